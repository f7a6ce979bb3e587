//! Waveforms of a run: selection, recording, VCD.

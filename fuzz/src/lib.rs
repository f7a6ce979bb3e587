//! Fuzz targets live in `fuzz_targets/`; what they share is in `warpwave::gen` and `warpwave::oracle`.

//! What software and machine agree on: instructions, registers, programs and their meaning.

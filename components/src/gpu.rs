//! Builds the whole machine from its configuration and wires it; the only file that knows everyone.

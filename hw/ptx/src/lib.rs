//! PTX text to a program that the machine runs.

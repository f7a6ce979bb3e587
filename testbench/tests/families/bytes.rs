//! 8-bit floats: conversions between f32, f16, e4m3 and e5m2.

use super::{Kernel, one_word_each};

/// -500 becomes the least number, -448; 3.3 becomes 3.25, which lies in the middle between 3 and 3.5, and goes to the even one.
#[test]
fn pairs_of_8_bit_floats_are_converted_to_f16_and_back() {
    let body = "\
        .reg .b16 %h<2>;\nmov.f32 %f1, 0fC3FA0000;\nmov.f32 %f2, 0f40533333;\n\
        cvt.rn.satfinite.e4m3x2.f32 %h0, %f1, %f2;\ncvt.rn.f16x2.e4m3x2 %a1, %h0;\n\
        cvt.rn.satfinite.e5m2x2.f16x2 %h1, %a1;\nmov.b32 %a2, {%h1, %h0};\n\
        setp.eq.u32 %p1, %t, 0;\nselp.b32 %r, %a2, %a1, %p1;";
    Kernel::of(&one_word_each("sm_90", body))
        .sizes(1, 2)
        .output(&[0xfe45_df42, 0xdf00_4280])
        .holds();
}

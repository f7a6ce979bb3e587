//! Kernels with divergence: branches, switches, loops with a trip count from the data.

/// `diverge_nested`: three levels of branches, a loop and an early exit.
pub fn nested(input: &[i32]) -> Vec<i32> {
    let n = input.len();
    let at = |i: usize| input[i % n];
    (0..n)
        .map(|i| match input[i] {
            v if v & 7 == 7 => (v * 3) ^ at(i + 1),
            v if v & 3 == 3 => v * 3 - at(i + 3),
            v if v & 1 == 1 => (0..).find(|r| r * r >= v).expect("some square is large enough"),
            v if v < 0 => -1,
            v => v / 7,
        })
        .collect()
}

/// `diverge_switch`: an operation on each pair.
pub fn switch(op: &[i32], a: &[f32], b: &[f32]) -> Vec<f32> {
    op.iter()
        .zip(a.iter().zip(b))
        .map(|(&op, (&x, &y))| case(op, x, y))
        .collect()
}

/// One of nine cases; the source lets case 7 fall through into the default.
fn case(op: i32, x: f32, y: f32) -> f32 {
    match op {
        0 => x + y,
        1 => x - y,
        2 => x * y,
        3 => x / y,
        4 => x.sqrt(),
        5 => x.max(y),
        6 => std::iter::successors(Some(x), |x| Some(x * 0.5))
            .find(|&x| x <= y)
            .expect("halving ends"),
        7 => x.floor() + 1.0,
        _ => 1.0,
    }
}

/// Steps of the Collatz sequences from each start to 1, at most `cap`.
pub fn collatz(starts: &[u64], cap: i32) -> Vec<i32> {
    starts.iter().map(|&start| collatz_steps(start, cap)).collect()
}

fn collatz_steps(start: u64, cap: i32) -> i32 {
    let next = |&v: &u64| (v > 1).then(|| if v % 2 == 0 { v / 2 } else { 3 * v + 1 });
    let steps = std::iter::successors(Some(start), next).take(cap as usize + 1).count() - 1;
    steps as i32
}

/// The section of the Mandelbrot set to draw.
#[derive(Clone, Copy)]
pub struct View {
    pub width: usize,
    pub height: usize,
    pub x0: f32,
    pub y0: f32,
    pub scale: f32,
    pub max_iter: i32,
}

/// Escape times, scaled to a byte. Sums and products are fused as in the compiled kernel: near the edge of the set one rounding can change a
/// count.
pub fn mandelbrot(view: View) -> Vec<u8> {
    let pixel = |k: usize| {
        let x = (k % view.width) as f32;
        let y = (k / view.width) as f32;
        let escape = escape_time(
            x.mul_add(view.scale, view.x0),
            y.mul_add(view.scale, view.y0),
            view.max_iter,
        );
        (255 * escape / view.max_iter) as u8
    };
    (0..view.width * view.height).map(pixel).collect()
}

fn escape_time(cr: f32, ci: f32, max_iter: i32) -> i32 {
    let (mut zr, mut zi) = (0.0f32, 0.0f32);
    let mut iter = 0;
    while iter < max_iter && zr * zr + zi * zi < 4.0 {
        let t = zr * zr - zi * zi + cr;
        zi = (2.0 * zr).mul_add(zi, ci);
        zr = t;
        iter += 1;
    }
    iter
}

//! Resolves the assertions of a scenario: bounds of metrics, and comparisons of expressions.

use super::expr::{Binary, Expr, Node};
use super::format::{self, LaunchName, Within};
use super::launches::LaunchIndex;
use super::quantity::{Constants, Quantity};
use super::{Assert, Comparison, Fault, Tolerance};

/// Largest bound of an assertion: counters have 64 bits.
const MAX_BOUND: f64 = 18_446_744_073_709_551_616.0;

/// Resolves all assertions. A fault has the index of its table.
pub(super) fn read(
    texts: Vec<format::Assert>,
    constants: &Constants,
    launches: &LaunchIndex,
) -> Result<(Vec<Assert>, Vec<Comparison>), (usize, Fault)> {
    let (mut asserts, mut comparisons) = (Vec::new(), Vec::new());
    for (n, text) in texts.into_iter().enumerate() {
        let at = |fault| (n, fault);
        match (text.that, text.metric) {
            (Some(format::Text(expr)), None) => {
                let has_bounds = text.min.is_some() || text.max.is_some() || text.equal.is_some();
                if has_bounds || text.launch.is_some() {
                    return Err(at(Fault::TwoAssertions));
                }
                for part in parts(expr.root()) {
                    let comparison = compare((&expr, part), text.within, constants, launches).map_err(at)?;
                    comparisons.push(Comparison {
                        points: text.points,
                        ..comparison
                    });
                }
            }
            (None, Some(metric)) if text.within.is_none() => {
                let bound = |bound: Option<Quantity>| bound.map(|bound| read_bound(&bound, constants)).transpose();
                let assert = Assert {
                    metric,
                    min: bound(text.min).map_err(at)?,
                    max: bound(text.max).map_err(at)?,
                    equal: bound(text.equal).map_err(at)?,
                    launch: text
                        .launch
                        .map(|launch| launches.find(&launch))
                        .transpose()
                        .map_err(at)?,
                    points: text.points,
                };
                if [assert.min, assert.max, assert.equal] == [None; 3] {
                    return Err(at(Fault::NothingAsserted));
                }
                if !can_hold(&assert) {
                    return Err(at(Fault::CannotHold));
                }
                asserts.push(assert);
            }
            _ => return Err(at(Fault::TwoAssertions)),
        }
    }
    Ok((asserts, comparisons))
}

/// True if some value is within all bounds.
fn can_hold(assert: &Assert) -> bool {
    let least = assert.min.into_iter().chain(assert.equal).fold(0.0, f64::max);
    let most = assert.max.into_iter().chain(assert.equal).fold(f64::INFINITY, f64::min);
    least <= most
}

/// The comparisons that `and` joins: each is an assertion of its own.
fn parts(node: &Node) -> Vec<&Node> {
    match node {
        Node::Binary(Binary::And, left, right) => [parts(left), parts(right)].concat(),
        node => vec![node],
    }
}

fn read_bound(bound: &Quantity, constants: &Constants) -> Result<f64, Fault> {
    let value = constants.number(bound)?.value();
    // A range test also rejects NaN.
    // Outside the range of a counter, a bound could not fail, or not hold.
    match (0.0..=MAX_BOUND).contains(&value) {
        true => Ok(value),
        false => Err(Fault::BadBound { value }),
    }
}

/// Resolves a comparison: a part of an expression. It must name a metric, and its sides must differ, or it would hold or fail whatever the
/// kernel does.
fn compare(
    (expr, part): (&Expr, &Node),
    within: Option<Within>,
    constants: &Constants,
    launches: &LaunchIndex,
) -> Result<Comparison, Fault> {
    let Node::Binary(operator, left, right) = part else {
        return Err(Fault::NoComparison);
    };
    match operator {
        Binary::Or => return Err(Fault::EitherOr),
        operator if !operator.compares() => return Err(Fault::NoComparison),
        _ if left == right => return Err(Fault::EqualSides),
        _ => {}
    }
    // With 100 % of the right side, a left side of 0 would always pass.
    let fixed = right
        .value(constants)
        .map_or(f64::INFINITY, |number| number.value().abs());
    let is_narrow = |distance: f64| distance < fixed || fixed == 0.0;
    let tolerance = match within {
        None => Tolerance::Distance(0.0),
        Some(_) if *operator != Binary::Equal => return Err(Fault::WithinWithoutEqual),
        Some(Within::Part(part)) if (0.0..1.0).contains(&part) => Tolerance::Part(part),
        Some(Within::Distance(distance)) if (0.0..MAX_BOUND).contains(&distance) && is_narrow(distance) => {
            Tolerance::Distance(distance)
        }
        Some(_) => return Err(Fault::BadWithin),
    };
    // Every name that is no constant is a metric, `cycles`, another run or a number of the GPU.
    let mut names = Vec::new();
    part.names(&mut names);
    let is_fixed = |name: &&str| constants.names().any(|constant| constant == *name);
    if names.iter().all(is_fixed) {
        return Err(Fault::NothingMeasured);
    }
    check_launches(part, launches)?;
    Ok(Comparison {
        text: expr.text().to_owned(),
        left: Node::clone(left),
        operator: *operator,
        right: Node::clone(right),
        tolerance,
        points: false,
    })
}

/// Checks that every launch of this scenario that the expression names exists.
fn check_launches(node: &Node, launches: &LaunchIndex) -> Result<(), Fault> {
    match node {
        Node::Index(base, index) => match (&**base, LaunchName::of(index)) {
            (Node::Name(_), Some(name)) => launches.find(&name).map(drop),
            (_, None) => Err(Fault::NotALaunch),
            // The base is a call, as in `cycles(other)[tiled]`: the index names a launch of the other run.
            _ => Ok(()),
        },
        Node::Call(_, args) => args.iter().try_for_each(|arg| check_launches(arg, launches)),
        Node::Unary(_, operand) => check_launches(operand, launches),
        Node::Binary(_, left, right) => {
            check_launches(left, launches)?;
            check_launches(right, launches)
        }
        Node::Number(_) | Node::Text(_) | Node::Name(_) => Ok(()),
    }
}

//! `--fault`: a fault of one link as text, `LINK:KIND[@KEY=VALUE,...]`.
//!
//! ```
//! use warpwave::fault::LinkFault;
//! let fault: LinkFault = "gpu.l2_slice[3].response:drop@cycle=5000".parse().unwrap();
//! assert_eq!((&fault.link[..], fault.fault.from.0), ("gpu.l2_slice[3].response", 5000));
//! assert!("gpu.l2_slice[3].response:melt".parse::<LinkFault>().is_err());
//! ```

use std::str::FromStr;

use thiserror::Error;
use warpwave_hw::link::fault::{Fault, FaultKind};
use warpwave_hw::time::Cycle;

/// The kinds, with their names.
pub const KINDS: [(&str, FaultKind); 6] = [
    (FaultKind::Delay.name(), FaultKind::Delay),
    (FaultKind::Stall.name(), FaultKind::Stall),
    (FaultKind::Drop.name(), FaultKind::Drop),
    (FaultKind::Duplicate.name(), FaultKind::Duplicate),
    (FaultKind::Corrupt.name(), FaultKind::Corrupt),
    (FaultKind::Reorder.name(), FaultKind::Reorder),
];

/// Cycles of a delay, or of the longest stall, if the text gives none.
const CYCLES: u32 = 20;

/// A fault, and the path of its link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkFault {
    /// The path of the link.
    pub link: String,
    /// The fault.
    pub fault: Fault,
}

/// Why a text is no fault.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum FaultError {
    /// There is no colon between link and kind.
    #[error("a fault is LINK:KIND, such as gpu.l2_slice[3].response:drop@cycle=5000")]
    Form,
    /// The kind is unknown.
    #[error("no fault `{0}`; the kinds are delay, stall, drop, duplicate, corrupt, reorder")]
    Kind(String),
    /// A key is unknown, or has no number.
    #[error("`{0}` is no setting of a fault; write cycle=N, cycles=N or seed=N, with commas between them")]
    Setting(String),
    /// The delay is too long.
    #[error("`{0}` is too long: a fault takes at most {most} cycles", most = u32::MAX)]
    Cycles(String),
}

impl FromStr for LinkFault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        let (link, rest) = text.rsplit_once(':').ok_or(FaultError::Form)?;
        let (kind, settings) = rest.split_once('@').unwrap_or((rest, ""));
        let known = KINDS.iter().find(|(name, _)| *name == kind);
        let (_, kind) = *known.ok_or_else(|| FaultError::Kind(kind.to_owned()))?;
        let mut fault = Fault {
            kind,
            // Without settings, the fault begins in the first cycle.
            from: Cycle::ZERO,
            cycles: CYCLES,
            seed: 0,
        };
        for setting in settings.split(',').filter(|setting| !setting.is_empty()) {
            let wrong = || FaultError::Setting(setting.to_owned());
            let (key, value) = setting.split_once('=').ok_or_else(wrong)?;
            let value: u64 = value.parse().map_err(|_| wrong())?;
            match key {
                "cycle" => fault.from = Cycle(value),
                "cycles" => {
                    let too_long = |_| FaultError::Cycles(setting.to_owned());
                    fault.cycles = value.try_into().map_err(too_long)?;
                }
                "seed" => fault.seed = value,
                _ => return Err(wrong()),
            }
        }
        let link = link.to_owned();
        Ok(LinkFault { link, fault })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_follow_the_kind() {
        let parsed: LinkFault = "a.b:stall@cycle=7,cycles=3,seed=9".parse().unwrap();
        let fault = Fault {
            kind: FaultKind::Stall,
            from: Cycle(7),
            cycles: 3,
            seed: 9,
        };
        let link = "a.b".to_owned();
        assert_eq!(parsed, LinkFault { link, fault });
    }

    #[test]
    fn wrong_text_says_what_is_expected() {
        let error = |text: &str| text.parse::<LinkFault>().unwrap_err();
        assert_eq!(error("a.b"), FaultError::Form);
        assert_eq!(error("a:melt"), FaultError::Kind("melt".to_owned()));
        assert_eq!(error("a:drop@cycle"), FaultError::Setting("cycle".to_owned()));
        assert_eq!(error("a:drop@cycle=-1"), FaultError::Setting("cycle=-1".to_owned()));
        assert_eq!(error("a:drop@when=1"), FaultError::Setting("when=1".to_owned()));
        // The largest number of 64 bits, and one more than the largest of 32.
        for cycles in ["cycles=18446744073709551615", "cycles=4294967296"] {
            let text = format!("a:stall@{cycles}");
            assert_eq!(error(&text), FaultError::Cycles(cycles.to_owned()));
        }
        assert!("a:stall@cycles=4294967295".parse::<LinkFault>().is_ok());
    }
}

//! Device memory: channels of banks, each behind a request queue. The name HBM covers GDDR too: only their timings differ.
//!
//! | Policy | Preset key | Module |
//! |---|---|---|
//! | order of requests | `hbm.scheduler` | `scheduler` |
//! | closing of open rows | `hbm.row_policy` | `row_policy` |
//! | banks of lines | `hbm.mapping` | `layout` |

pub mod channel;

pub mod checker;

mod bank;

mod layout;

mod queue;

mod refresh;

mod row_policy;

mod scheduler;

mod timing;

//! Device memory: channels of banks, each behind a queue. What the model calls HBM stands for GDDR as well; timing tells them
//! apart.
//!
//! | Policy | Preset key | Module |
//! |---|---|---|
//! | which request goes next | `hbm.scheduler` | `scheduler` |
//! | when an open row is closed | `hbm.row_policy` | `row_policy` |
//! | which bank a line is in | `hbm.mapping` | `layout` |

pub mod channel;

mod bank;

mod layout;

mod queue;

mod refresh;

mod row_policy;

mod scheduler;

mod timing;

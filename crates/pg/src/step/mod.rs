//! One step of the engine, by subject. A step handles one event and queues the actions that follow
//! from it.

pub(crate) mod jobs;
pub(crate) mod grow;
pub(crate) mod hand_over;
pub(crate) mod gone;
pub(crate) mod lending;
pub(crate) mod serving;
pub(crate) mod farewell;
pub(crate) mod server_input;
pub(crate) mod cancel;
pub(crate) mod console;
pub(crate) mod control;
pub(crate) mod tick;
pub(crate) mod view;
pub(crate) mod check;
pub(crate) mod dispatch;

//! Messages in great numbers, of great length, or at bad moments.

mod unread;
pub(crate) mod bulk;
mod syncs;
mod last_words;
mod copy_ended;

//! The two queues shared with the kernel: requests going in, completions coming out.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use io_uring::types::{CancelBuilder, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, Probe, Submitter, cqueue, opcode, squeue};

use crate::table::Key;

/// The kind of request that a completion belongs to. The kernel hands it back together with a
/// [`Key`] or a number of the driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operation {
    Receive,
    Send,
    Connect,
    Accept,
    Wake,
    Cancel,
}

impl Operation {
    pub(super) fn of(self, key: Key) -> u64 {
        self.with(key.to_bits())
    }

    pub(super) fn with(self, bits: u64) -> u64 {
        (self as u64) << Key::BITS | bits
    }

    fn from_data(data: u64) -> Operation {
        match data >> Key::BITS {
            0 => Operation::Receive,
            1 => Operation::Send,
            2 => Operation::Connect,
            3 => Operation::Accept,
            4 => Operation::Wake,
            _ => Operation::Cancel,
        }
    }
}

/// The completion of a request, or one of several.
pub(super) struct Completion {
    pub(super) operation: Operation,
    pub(super) bits: u64,
    /// The result; negative for an error number.
    pub(super) result: i32,
    /// The number of the buffer that the kernel picked.
    pub(super) buffer: Option<u16>,
    /// True if the request continues, with more completions to come.
    pub(super) more: bool,
}

/// The two queues; see the module.
pub(super) struct Ring {
    ring: IoUring,
    /// Requests for which the queue had no room. They go in before any later one.
    backlog: VecDeque<squeue::Entry>,
    enabled: bool,
    /// The flags of each call.
    flags: EnterFlags,
}

impl Ring {
    /// Opens the queues. The thread that enters first is the one that uses them.
    pub(super) fn new(entries: u32) -> io::Result<Ring> {
        let entries = entries.clamp(8, 1 << 15);
        // Deferred: the kernel makes completions while the thread is in the kernel anyway, in one
        // batch and without interrupting it. Before 6.1, the next best option is that at least no
        // interrupt forces the thread into the kernel.
        let deferred = Ring::setup(entries, |builder| builder.setup_defer_taskrun());
        let ring = match deferred {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                Ring::setup(entries, |builder| builder.setup_coop_taskrun())?
            }
            other => other?,
        };
        let parameters = ring.params();
        if !parameters.is_feature_ext_arg() || !parameters.is_feature_nodrop() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        // Sockets are no disks: a worker that waits for them is idle. Without the flag, the kernel
        // counts the time as waiting for I/O, and does some accounting at each wait.
        let flags = match parameters.is_feature_no_iowait() {
            true => EnterFlags::NO_IOWAIT,
            false => EnterFlags::empty(),
        };
        let flags = flags | EnterFlags::GETEVENTS | EnterFlags::EXT_ARG;
        Ok(Ring { ring, backlog: VecDeque::new(), enabled: false, flags })
    }

    fn setup(
        entries: u32,
        tasks: impl FnOnce(&mut io_uring::Builder) -> &mut io_uring::Builder,
    ) -> io::Result<IoUring> {
        let mut builder = IoUring::builder();
        builder
            .setup_single_issuer()
            // The single issuer is the thread that enables the ring.
            .setup_r_disabled()
            // A refused request does not hold up the requests after it.
            .setup_submit_all()
            .setup_clamp()
            .setup_cqsize(entries * 4);
        tasks(&mut builder).build(entries)
    }

    pub(super) fn submitter(&self) -> Submitter<'_> {
        self.ring.submitter()
    }

    /// True if the kernel knows all requests that the driver makes.
    pub(super) fn supported(&self) -> io::Result<bool> {
        let mut probe = Probe::new();
        self.ring.submitter().register_probe(&mut probe)?;
        let needed = [
            opcode::AsyncCancel::CODE,
            opcode::Connect::CODE,
            opcode::PollAdd::CODE,
            opcode::Read::CODE,
            opcode::RecvMulti::CODE,
            opcode::Send::CODE,
        ];
        Ok(needed.iter().all(|code| probe.is_supported(*code)))
    }

    /// Adds a request, which the next [`Ring::enter`] hands to the kernel.
    ///
    /// # Safety
    ///
    /// The memory it points to stays valid until its completion, and the descriptor open until the
    /// kernel has taken the request.
    pub(super) unsafe fn push(&mut self, request: squeue::Entry) {
        let mut queue = self.ring.submission();
        // SAFETY: as the caller says.
        if !self.backlog.is_empty() || unsafe { queue.push(&request) }.is_err() {
            self.backlog.push_back(request);
        }
    }

    /// Cancels a request. If it still exists, its last completion says so.
    pub(super) fn cancel(&mut self, data: u64) {
        let request = opcode::AsyncCancel::new(data)
            .build()
            .flags(squeue::Flags::SKIP_SUCCESS)
            .user_data(Operation::Cancel.with(0));
        // SAFETY: it points to no memory and names no descriptor.
        unsafe { self.push(request) };
    }

    /// Hands over all requests and waits for a completion, in one call unless there are more
    /// requests than the queue has room for.
    pub(super) fn enter(&mut self, wait: Option<Duration>) -> io::Result<()> {
        if !self.enabled {
            self.ring.submitter().register_enable_rings()?;
            self.enabled = true;
        }
        while self.fill() > 0 {
            if self.call(Some(Duration::ZERO))? == 0 {
                // There is no room for completions: the caller has to take some out first.
                return Ok(());
            }
        }
        self.call(wait).map(drop)
    }

    /// Moves requests that had no room before into the queue, and returns how many still have none.
    fn fill(&mut self) -> usize {
        let mut queue = self.ring.submission();
        while let Some(request) = self.backlog.front() {
            // SAFETY: promised when it was pushed.
            if unsafe { queue.push(request) }.is_err() {
                break;
            }
            self.backlog.pop_front();
        }
        self.backlog.len()
    }

    /// Calls `io_uring_enter` once. Returns how many requests the kernel took.
    fn call(&mut self, wait: Option<Duration>) -> io::Result<usize> {
        let flags = self.flags.bits();
        let (submitter, queue, completions) = self.ring.split();
        let requests = queue.len();
        let at_once = wait.is_some_and(|wait| wait.is_zero()) || !completions.is_empty();
        drop((queue, completions));
        let limit = wait.map(Timespec::from);
        let arguments = match &limit {
            Some(limit) if !at_once => SubmitArgs::new().timespec(limit),
            _ => SubmitArgs::new(),
        };
        // SAFETY: the flags call for an argument of this type, and the time it points to is a
        // local.
        let answer = unsafe {
            submitter.enter(requests as u32, u32::from(!at_once), flags, Some(&arguments))
        };
        match answer {
            Err(error) => match error.raw_os_error() {
                // The time is up, a signal came, or there is no room or memory now. The next turn
                // handles all of these.
                Some(libc::ETIME | libc::EINTR | libc::EBUSY | libc::EAGAIN) => Ok(0),
                _ => Err(error),
            },
            answer => answer,
        }
    }

    /// True if the kernel has all requests.
    pub(super) fn has_handed_over(&mut self) -> bool {
        self.backlog.is_empty() && self.ring.submission().is_empty()
    }

    /// True if all completions made so far have been taken.
    pub(super) fn has_told_all(&mut self) -> bool {
        !self.ring.submission().cq_overflow() && self.ring.completion().is_empty()
    }

    /// Returns the number of completions to be taken.
    pub(super) fn completions(&mut self) -> usize {
        self.ring.completion().len()
    }

    /// Takes the next completion.
    pub(super) fn next(&mut self) -> Option<Completion> {
        let entry = self.ring.completion().next()?;
        let data = entry.user_data();
        Some(Completion {
            operation: Operation::from_data(data),
            bits: data & ((1 << Key::BITS) - 1),
            result: entry.result(),
            buffer: cqueue::buffer_select(entry.flags()),
            more: cqueue::more(entry.flags()),
        })
    }
}

impl Drop for Ring {
    /// Cancels all requests. When a ring is closed, the kernel releases its requests later; they
    /// must be gone before the memory that they point to is freed.
    fn drop(&mut self) {
        let limit = Timespec::from(Duration::from_secs(1));
        let _ = self.ring.submitter().register_sync_cancel(Some(limit), CancelBuilder::any());
    }
}

//! The buffers into which the kernel receives: it picks one when bytes have arrived, not before.
//!
//! The buffers lie side by side in pages that use no memory until touched. The ring with their
//! numbers is a queue, so the kernel uses all buffers in it before it returns to the first. Hence
//! the ring starts with a few buffers, which stay in the processor's caches. More are added when
//! many connections found none at the same time. A single connection with many bytes would empty
//! any number of buffers, and is better off with few.

use std::io;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// The number under which the ring of buffers is known to the kernel.
pub(super) const GROUP: u16 = 0;

const AT_FIRST: u16 = 16;

/// The ring of buffers; see the module.
pub(super) struct Buffers {
    ring: Pages,
    bytes: Pages,
    /// The number of slots, a power of two.
    count: u16,
    size: u32,
    /// The number of buffers that were ever in the ring: those with lower numbers.
    used: u16,
    tail: u16,
}

impl Buffers {
    pub(super) fn new(count: u16, size: u32) -> io::Result<Buffers> {
        let count = count.clamp(1, 1 << 15).next_power_of_two();
        let size = size.max(1);
        let ring = Pages::new(usize::from(count) * size_of::<BufRingEntry>())?;
        let bytes = Pages::new(usize::from(count) * size as usize)?;
        Ok(Buffers { ring, bytes, count, size, used: 0, tail: 0 })
    }

    /// # Safety
    ///
    /// The buffers outlive the ring that this submits to.
    pub(super) unsafe fn register(&mut self, submitter: &Submitter<'_>) -> io::Result<()> {
        let address = self.ring.start.as_ptr() as u64;
        // SAFETY: the pages have room for `count` entries, and the caller keeps them.
        unsafe { submitter.register_buf_ring_with_flags(address, self.count, GROUP, 0)? };
        self.use_more(AT_FIRST);
        Ok(())
    }

    /// Returns the first bytes of a buffer that the kernel has filled.
    pub(super) fn filled(&self, number: u16, length: usize) -> &[u8] {
        assert!(number < self.used && length <= self.size as usize);
        // SAFETY: in range by the line above; the pages are zeroed at first, so all of it is
        // initialised. The kernel has given the buffer away, and does not write to it before
        // `give`, for which this borrow has to end.
        unsafe {
            let start = self.bytes.start.as_ptr().add(usize::from(number) * self.size as usize);
            slice::from_raw_parts(start, length)
        }
    }

    /// Gives a buffer to the kernel, for the first time or again.
    pub(super) fn give(&mut self, number: u16) {
        assert!(number < self.used);
        let slot = usize::from(self.tail & (self.count - 1));
        let first = self.ring.start.as_ptr().cast::<BufRingEntry>();
        // SAFETY: the slot is in range by the mask. It is not one the kernel reads, since there are
        // as many slots as buffers and this one is not in the ring. All bits are valid for an
        // entry.
        let entry = unsafe { &mut *first.add(slot) };
        let offset = u64::from(number) * u64::from(self.size);
        entry.set_addr(self.bytes.start.as_ptr() as u64 + offset);
        entry.set_len(self.size);
        entry.set_bid(number);
        self.tail = self.tail.wrapping_add(1);
        // SAFETY: `first` is the ring's first entry, where the tail lies in a field that entries do
        // not use. It is aligned, and shared with the kernel, hence atomic.
        let tail = unsafe { AtomicU16::from_ptr(BufRingEntry::tail(first).cast_mut()) };
        tail.store(self.tail, Ordering::Release);
    }

    /// Takes note of how many connections found no buffer in a turn. If they are many, doubles the
    /// number of buffers, up to the maximum.
    pub(super) fn starved(&mut self, connections: u64) {
        if connections > u64::from(self.used / 4) {
            self.use_more(self.used);
        }
    }

    fn use_more(&mut self, more: u16) {
        let until = self.used.saturating_add(more).min(self.count);
        for number in self.used..until {
            self.used = number + 1;
            self.give(number);
        }
    }
}

/// Memory from the kernel: aligned to pages, zeroed, and not allocated until touched.
struct Pages {
    start: NonNull<u8>,
    length: usize,
}

// SAFETY: it owns the memory, and nothing about it depends on the thread.
unsafe impl Send for Pages {}

impl Pages {
    fn new(length: usize) -> io::Result<Pages> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory of ours.
        let start = unsafe { libc::mmap(ptr::null_mut(), length, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Pages { start, length })
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours alone and of that length.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

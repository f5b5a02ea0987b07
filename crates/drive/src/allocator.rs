//! The thresholds of the C library's allocator, which Rust uses as well.

/// Bounds how much memory a thread returns to the kernel when it frees a block.
///
/// By default, glibc raises its thresholds to 32 and 64 MiB when the program frees large blocks.
/// From then on a thread that frees a small block may return 64 MiB, which takes up to a tenth of
/// a second.
pub fn free_little_at_once() {
    #[cfg(target_env = "gnu")]
    {
        /// Larger blocks have a mapping of their own.
        const LARGE: i32 = 1 << 20;
        /// Free memory that a thread keeps.
        const KEPT: i32 = 4 << 20;
        // SAFETY: the calls set two numbers, under a lock of the allocator.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEPT);
        }
    }
}

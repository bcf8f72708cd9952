//! Which code allocates what. `snug profile PID` shows it, and [`crate::stats`] counts on as ever.

use crate::{ffi, OutOfMemory};

/// From now on a sample of the allocations of all threads is noted, with the code that makes them, until [`end`].
/// As the variable `SNUG_PROFILE=1` does from the start.
///
/// ```
/// snug::profile::begin()?;
/// let observed = vec![0u8; 1 << 20];
/// snug::profile::end();
/// # drop(observed);
/// # Ok::<(), snug::OutOfMemory>(())
/// ```
pub fn begin() -> Result<(), OutOfMemory> {
    // SAFETY: may be called at any time.
    if unsafe { ffi::snug_profile_begin() } == 0 {
        Ok(())
    } else {
        Err(OutOfMemory)
    }
}

/// Notes no more. What was noted stays, and blocks that were are still seen to be freed.
pub fn end() {
    // SAFETY: may be called at any time.
    unsafe { ffi::snug_profile_end() }
}

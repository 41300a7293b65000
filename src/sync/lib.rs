//! sync: the locks of all rooms, which state once what a panic means for what they guard (Go's `sync`).
//!
//! A lock of the standard library is poisoned when its holder panics, and everybody after that has to say
//! what follows. Here it is said once: **what the panic left is used.** A panic is a bug that ends one
//! request or restarts one component, visibly; were the lock to fail from then on, it would end all of them,
//! one after the other. What is guarded is whole again after each statement that changes it, or is worked out
//! anew by the next reconcile, so whoever comes next may go on with it.
//!
//! The guards are those of the standard library, so that a lock which is held across an await is refused.
//! What goes in here must know nothing of ours.

#![warn(missing_docs, unreachable_pub)]

use std::sync::{PoisonError, TryLockError};

pub use std::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

/// A [`std::sync::Mutex`] whose `lock` never fails.
#[derive(Debug, Default)]
pub struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    /// A lock that guards the value.
    pub const fn new(value: T) -> Mutex<T> {
        Mutex(std::sync::Mutex::new(value))
    }

    /// Takes the value out of its lock.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits until nobody else holds it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds it, unless somebody else does.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

/// A [`std::sync::RwLock`] whose `read` and `write` never fail.
#[derive(Debug, Default)]
pub struct RwLock<T: ?Sized>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    /// A lock that guards the value.
    pub const fn new(value: T) -> RwLock<T> {
        RwLock(std::sync::RwLock::new(value))
    }

    /// Takes the value out of its lock.
    pub fn into_inner(self) -> T {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits until nobody writes.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody else reads or writes.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    #[test]
    fn what_a_panic_left_behind_a_mutex_is_used() {
        let count = Mutex::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            *count.lock() += 1;
            let _held = count.lock();
            panic!("a bug");
        }));
        assert!(panicked.is_err());
        assert_eq!(*count.lock(), 2);
        assert_eq!(count.try_lock().map(|count| *count), Some(2));
        assert_eq!(count.into_inner(), 2);
    }

    #[test]
    fn what_a_panic_left_behind_a_read_write_lock_is_used() {
        let count = RwLock::new(1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut count = count.write();
            *count += 1;
            panic!("a bug");
        }));
        assert!(panicked.is_err());
        assert_eq!(*count.read(), 2);
        *count.write() += 1;
        assert_eq!(*count.read(), 3);
    }

    #[test]
    fn what_somebody_holds_is_not_tried_in_vain() {
        let count = Mutex::new(1);
        let held = count.lock();
        assert!(count.try_lock().is_none());
        drop(held);
        assert!(count.try_lock().is_some());
    }
}

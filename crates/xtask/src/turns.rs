//! Work that several threads take turns at.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Result, anyhow};

/// Works on items: each worker, on a thread of its own, takes the next one when it is done. Returns
/// the results in the items' order.
///
/// # Errors
/// The first error, when all threads have ended.
pub(crate) fn in_turns<W: Send, I: Sync, R: Send>(
    workers: Vec<W>,
    items: &[I],
    work: impl Fn(&mut W, &I) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (next, work) = (AtomicUsize::new(0), &work);
    let take = |mut worker: W| {
        let mut done = Vec::new();
        while let index = next.fetch_add(1, Ordering::Relaxed)
            && let Some(item) = items.get(index)
        {
            done.push((index, work(&mut worker, item)?));
        }
        Ok::<_, anyhow::Error>(done)
    };
    let take = &take;
    let ended: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> =
            workers.into_iter().map(|worker| scope.spawn(move || take(worker))).collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    let mut done = Vec::new();
    for thread in ended {
        done.extend(thread.map_err(|_| anyhow!("a run has panicked"))??);
    }
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use anyhow::ensure;

    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..100).collect();
        let doubled = in_turns(vec![(); 3], &items, |(), item| Ok(item * 2)).expect("it is fine");
        assert!(doubled.into_iter().eq((0..100).map(|item| item * 2)));
        let failed = in_turns(vec![(); 3], &items, |(), item| {
            ensure!(*item != 7, "not {item}");
            Ok(())
        });
        assert_eq!(failed.expect_err("one fails").to_string(), "not 7");
    }
}

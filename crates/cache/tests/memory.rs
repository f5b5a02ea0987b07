//! The bytes that the cache counts are those that the process takes, and the limit holds.

use std::sync::Arc;

use refrain_cache::{Asker, Cache, Found, Kept, Seed, Terms, TopicSet, Topics, Waiter};

const TERMS: Terms = Terms {
    ttl: u64::MAX,
    empty_ttl: u64::MAX,
    stale: 0,
    if_error: 0,
    jitter: 0,
    queue: 0,
    since: 0,
    waited: 0,
};

/// Returns the memory of the process that is resident, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("the kernel tells it");
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok());
    pages.expect("it is a number") * 4096
}

/// Fetches one reply. True if it was there.
fn fetch(cache: &Cache, topics: &Arc<TopicSet>, key: u64, reply: &[u8], out: &mut Vec<u8>) -> bool {
    let key = [&key.to_le_bytes()[..], &[7; 24]].concat();
    out.clear();
    match cache.look(&key, topics, &TERMS, 0, Asker::Alone, out) {
        Found::Hit(_) => true,
        Found::Miss(fill) => {
            cache.store(&fill, reply, &TERMS, 1, false);
            false
        }
        Found::Wait | Found::Alone => panic!("nobody else asks"),
        Found::Stale(..) | Found::Fetch(_) => panic!("no reply has an end"),
    }
}

/// Both measure the memory of the process, one behind the other.
#[test]
fn the_count_of_bytes_is_that_of_the_process_and_the_limit_holds() {
    let topics = Topics::new(Seed::default());
    let set = topics.set(vec![topics.topic(b"all")], &Arc::default());
    let mut out = Vec::new();

    let before = resident();
    let cache = Cache::new(Seed::default(), 1 << 30, &[1 << 30]);
    for key in 0..1_000_000 {
        fetch(&cache, &set, key, &[key as u8; 64], &mut out);
    }
    assert_eq!(cache.stats().entries, 1_000_000);
    let (grown, counted) = (resident() - before, cache.bytes());
    let off = counted.abs_diff(grown) * 100 / grown;
    println!("1,000,000 entries: {grown} bytes resident, {counted} counted: {off} % off");
    assert!(off < 10, "{grown} bytes resident, {counted} counted");
    drop(cache);

    let limit = 16 << 20;
    let before = resident();
    let cache = Cache::new(Seed::default(), limit, &[limit]);
    for key in 0..400_000_u64 {
        let long = (key * 7919 % 1000) as usize;
        fetch(&cache, &set, key, &vec![1; long], &mut out);
        assert!(key % 1000 > 0 || cache.bytes() <= limit);
    }
    let grown = resident().saturating_sub(before);
    println!("limit {limit}: {grown} bytes resident, {} counted", cache.bytes());
    assert!(grown < limit * 11 / 10, "{grown}");
    assert!(cache.bytes() > limit * 8 / 10, "{}", cache.bytes());
}

/// Keys that are asked for often stay while many others are asked for once.
#[test]
fn a_scan_does_not_evict_what_is_used() {
    let topics = Topics::new(Seed::default());
    let set = topics.set(vec![topics.topic(b"all")], &Arc::default());
    let limit = 4 << 20;
    let cache = Cache::new(Seed::default(), limit, &[limit]);
    let mut out = Vec::new();
    let (mut hot, mut asked) = (0, 0);
    for round in 0..400_u64 {
        for key in 0..100 {
            hot += u64::from(fetch(&cache, &set, key, &[1; 64], &mut out) && round > 0);
            asked += u64::from(round > 0);
        }
        for key in 0..1000 {
            fetch(&cache, &set, 1_000_000 + round * 1000 + key, &[1; 64], &mut out);
        }
    }
    assert!(cache.stats().evicted > 300_000);
    assert_eq!(hot, asked);
}

/// A rule's replies stay within its quota, and those of others are not evicted for them.
#[test]
fn a_quota_is_kept_and_others_do_not_pay() {
    let topics = Topics::new(Seed::default());
    let set = topics.set(vec![topics.topic(b"all")], &Arc::default());
    let (limit, quota) = (8 << 20, 1 << 20);
    let cache = Cache::new(Seed::default(), limit, &[limit, quota]);
    let mut out = Vec::new();
    for key in 0..5000 {
        fetch(&cache, &set, key, &[1; 64], &mut out);
    }
    let own = Terms { queue: 1, ..TERMS };
    for key in 0..100_000_u64 {
        let key = [&key.to_le_bytes()[..], &[9; 24]].concat();
        if let Found::Miss(fill) = cache.look(&key, &set, &own, 0, Asker::Alone, &mut out) {
            cache.store(&fill, &[1; 64], &own, 1, false);
        }
    }
    assert!(cache.bytes() < limit / 2, "{}", cache.bytes());
    for key in 0..5000 {
        assert!(fetch(&cache, &set, key, &[1; 64], &mut out));
    }
}

/// A reply that is too large for the cache is fetched by each asker at once: nobody waits for it.
#[test]
fn nobody_waits_for_a_reply_that_is_too_large() {
    let topics = Topics::new(Seed::default());
    let set = topics.set(vec![topics.topic(b"all")], &Arc::default());
    let limit = 4 << 20;
    let cache = Cache::new(Seed::default(), limit, &[limit]);
    let waiter = Waiter { core: 0, client: 1, request: 1 };
    let mut out = Vec::new();
    let mut look = || cache.look(b"key", &set, &TERMS, 0, Asker::Waits(waiter), &mut out);
    let Found::Miss(fill) = look() else { panic!("it is not there") };
    assert!(matches!(look(), Found::Wait));
    let (kept, waiters) = cache.store(&fill, &vec![1; 1 << 20], &TERMS, 1, false);
    assert_eq!((kept, waiters), (Kept::Large, vec![waiter]));
    assert!(matches!(look(), Found::Alone));
    assert!(out.is_empty());
}

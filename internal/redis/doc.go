// Package redis is the only client of Redis. It counts the limits on rows for all processes together, and keeps their
// claims of archived days ([Claims]). Claims are safe to lose. The rest of this page is about the limits.
//
// # The promise
//
// In no sliding second are more rows granted than the limit and the burst. One script reads the server's clock, fills
// both buckets, and takes from them, all at once. No clock of a client matters. The reasons for its rules:
//
//   - A bucket that is not known starts empty. A server that was restarted without its data does not know whether the
//     bucket was full or spent a moment ago. A full one would grant a second burst. An empty one fills within the time
//     that the burst takes at the limit, a tenth of a second by default.
//   - A clock that is set back brings no tokens. A clock that is set forward fills a bucket at most once: it
//     grants one burst too many. Synchronize the server's clock by slewing.
//   - A replica that takes over may not have the last writes. Then it grants what was granted meanwhile once more, at
//     most a burst.
//   - A call whose answer is lost may have taken tokens. They are not used, so fewer rows are granted.
//
// # Redis is away
//
// A call ends within [Deadline]. A breaker then spares a server that is away or slow: after 10 calls of which half
// failed it lets none through for 30 s, and then 5 for a trial. A server that is read-only, out of memory or loading
// its data counts as away, too.
package redis

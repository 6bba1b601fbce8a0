// Package claims has one of several processes do a piece of work that all of them need.
//
// A process claims a key, works, and ends the claim. The rules are those of [Port], which is kept by Postgres, by Redis
// and by [Memory]:
//
//   - A key has one claim at a time. It ends by [Port.End], or by itself after its lease. So a process that was killed
//     blocks nobody for longer than that.
//   - A claim of [High] takes over one of [Low]. Nothing else takes over a claim.
//   - Each claim has a version, which is above all former ones of the key, expired ones included.
//   - [Port.Keep] and [Port.End] change the claim of their version and no other.
//   - The server's clock decides. No clock of a process matters.
//
// A claim saves work and proves nothing. [Once] works without it if no port answers, or if waiting takes too long. So
// the same work may be done twice, and never fails because of claims.
package claims

// Package limit bounds how many rows a second are written, so that a catch-up does not flood a database that others use.
//
// A [Pair] has two buckets of tokens, one token a row. All lanes draw on the bucket of the whole limit. The low lanes
// also need a token of the low limit, so a part of the limit is always left for the urgent lane. A limit only delays a
// write. It never gives or takes a home.
//
// A [Plan] has the limits of the settings. A process without shared state takes a part of them: [Plan.Consumer],
// [Plan.Tenth] or [Plan.CutOff].
//
// The package has no clock and no client: the caller says what time it is.
package limit

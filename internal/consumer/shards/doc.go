// Package shards divides the partitions of the source topics among several Postgres servers.
//
// A shard is a server with ranges of partitions of its own. Every process of a shard works on these alone, so a
// partition has one server and a decision is stored once in it. The package knows no clients and no records.
package shards

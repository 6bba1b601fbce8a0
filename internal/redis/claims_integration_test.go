//go:build integration

package redis

import (
	"testing"

	"docket/internal/history/claims"
	"docket/internal/testkit/claimtest"
	"docket/internal/testkit/testenv"
)

func claimsOn(url string) claimtest.World {
	return func(t testing.TB) claims.Port { return newClaims(t, url) }
}

func TestRedis_Claims(t *testing.T) {
	t.Parallel()
	claimtest.Suite(t, claimsOn("redis://"+testenv.OwnRedis(t).Addr()))
}

func TestRedisCluster_Claims(t *testing.T) {
	t.Parallel()
	addrs := testenv.OwnRedisCluster(t).Addrs()
	claimtest.Suite(t, claimsOn("redis://"+addrs[0]+"?addr="+addrs[1]+"&addr="+addrs[2]))
}

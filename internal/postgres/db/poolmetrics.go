package db

import (
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
)

// Collector gives the state of the pool as docket_postgres_pool_... metrics.
func (db *DB) Collector() prometheus.Collector { return poolCollector{db.pool} }

type poolCollector struct{ pool *pgxpool.Pool }

type poolMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(*pgxpool.Stat) float64
}

func poolGauge(name, help string, value func(*pgxpool.Stat) float64) poolMetric {
	return poolMetric{prometheus.NewDesc("docket_postgres_pool_"+name, help, nil, nil), prometheus.GaugeValue, value}
}

func poolCounter(name, help string, value func(*pgxpool.Stat) float64) poolMetric {
	return poolMetric{prometheus.NewDesc("docket_postgres_pool_"+name, help, nil, nil), prometheus.CounterValue, value}
}

var poolMetrics = []poolMetric{
	poolGauge("max_connections", "Most connections that the pool may have.",
		func(s *pgxpool.Stat) float64 { return float64(s.MaxConns()) }),
	poolGauge("connections", "Connections of the pool, those being dialled included.",
		func(s *pgxpool.Stat) float64 { return float64(s.TotalConns()) }),
	poolGauge("acquired_connections", "Connections in use.",
		func(s *pgxpool.Stat) float64 { return float64(s.AcquiredConns()) }),
	poolGauge("idle_connections", "Connections not in use.",
		func(s *pgxpool.Stat) float64 { return float64(s.IdleConns()) }),
	poolGauge("constructing_connections", "Connections being dialled.",
		func(s *pgxpool.Stat) float64 { return float64(s.ConstructingConns()) }),
	poolCounter("acquires_total", "Connections taken from the pool.",
		func(s *pgxpool.Stat) float64 { return float64(s.AcquireCount()) }),
	poolCounter("acquire_seconds_total", "Time spent taking connections from the pool.",
		func(s *pgxpool.Stat) float64 { return s.AcquireDuration().Seconds() }),
	poolCounter("empty_acquires_total", "Connections that had to be waited or dialled for.",
		func(s *pgxpool.Stat) float64 { return float64(s.EmptyAcquireCount()) }),
	poolCounter("empty_acquire_wait_seconds_total", "Time spent waiting or dialling for a connection.",
		func(s *pgxpool.Stat) float64 { return s.EmptyAcquireWaitTime().Seconds() }),
	poolCounter("canceled_acquires_total", "Waits for a connection that were given up.",
		func(s *pgxpool.Stat) float64 { return float64(s.CanceledAcquireCount()) }),
	poolCounter("new_connections_total", "Connections dialled.",
		func(s *pgxpool.Stat) float64 { return float64(s.NewConnsCount()) }),
	poolCounter("lifetime_closed_connections_total", "Connections closed for their age.",
		func(s *pgxpool.Stat) float64 { return float64(s.MaxLifetimeDestroyCount()) }),
	poolCounter("idle_closed_connections_total", "Connections closed for not being used.",
		func(s *pgxpool.Stat) float64 { return float64(s.MaxIdleDestroyCount()) }),
}

// Describe is of prometheus.Collector.
func (c poolCollector) Describe(out chan<- *prometheus.Desc) {
	for _, m := range poolMetrics {
		out <- m.desc
	}
}

// Collect is of prometheus.Collector.
func (c poolCollector) Collect(out chan<- prometheus.Metric) {
	stat := c.pool.Stat()
	for _, m := range poolMetrics {
		out <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(stat))
	}
}

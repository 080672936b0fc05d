package web

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// collector makes metrics from the facts at each request, and keeps nothing.
type collector struct {
	facts func() Facts
	descs []*prometheus.Desc // as metrics
}

func newCollector(facts func() Facts) *collector {
	c := &collector{facts: facts}
	for _, m := range metrics {
		c.descs = append(c.descs, prometheus.NewDesc(m.name, m.help, m.labels, nil))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// withoutLedger are the metrics that are known while the ledger is not opened.
var withoutLedger = []string{"vaultd_alive", "vaultd_ready", "vaultd_build_info", "vaultd_environment_info", "vaultd_facts_timestamp_seconds",
	"vaultd_needs_person", "vaultd_state_free_bytes", "vaultd_ledger_bytes", "vaultd_safe_mode"}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	f := c.facts()
	for i, m := range metrics {
		if f.NoLedger && !slices.Contains(withoutLedger, m.name) {
			continue
		}
		m.read(f, func(value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(c.descs[i], m.kind, value, labels...)
		})
	}
}

// newRegistry is a registry of vaultd's metrics, and of those of the process and the runtime.
func newRegistry(facts func() Facts) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(newCollector(facts), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func unixSeconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}

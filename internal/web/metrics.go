package web

import (
	"github.com/prometheus/client_golang/prometheus"

	"vaultd/internal/ledger"
)

// metric is one family: how it is called, and what it says.
type metric struct {
	name, help string
	kind       prometheus.ValueType
	labels     []string
	read       func(f Facts, add func(value float64, labels ...string))
}

const (
	gauge   = prometheus.GaugeValue
	counter = prometheus.CounterValue
)

// metrics are all families of vaultd's own, in the order of docs/metrics.md.
var metrics = []metric{
	{"vaultd_alive", "1 while the ledger answers and the loops come round; as /livez", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(boolValue(len(f.Dead) == 0))
	}},
	{"vaultd_ready", "1 while nothing keeps folders from being archived; as /readyz", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(boolValue(len(f.Dead)+len(f.Unfit) == 0))
	}},
	{"vaultd_build_info", "1; the version that runs", gauge, []string{"version", "go"}, func(f Facts, add func(float64, ...string)) {
		add(1, f.Version, f.Go)
	}},
	{"vaultd_environment_info", "1; test or production: what a test environment archives is no evidence", gauge, []string{"environment"}, func(f Facts, add func(float64, ...string)) {
		add(1, f.Environment)
	}},
	{"vaultd_facts_timestamp_seconds", "when the numbers here were gathered; old ones mean that something hangs", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(float64(f.At.UnixMilli()) / 1000)
	}},
	{"vaultd_folders_seen_total", "folders ever taken, from the ledger; equals the sum of vaultd_folders", counter, nil, func(f Facts, add func(float64, ...string)) {
		add(float64(f.Balance.Seen))
	}},
	{"vaultd_folders", "folders by the state in which they stand, from the ledger", gauge, []string{"state"}, func(f Facts, add func(float64, ...string)) {
		for _, s := range ledger.States() {
			add(float64(f.Balance.States[s]), s.String())
		}
	}},
	{"vaultd_balance_agrees", "1 while every folder seen stands in exactly one state", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(boolValue(f.Balance.IsBalanced()))
	}},
	{"vaultd_needs_person", "what needs a person, by its stable word as in vaultd status: documents, and faults of drops, services and this machine", gauge, []string{"what"}, func(f Facts, add func(float64, ...string)) {
		for what, n := range f.NeedsPerson {
			add(float64(n), what)
		}
	}},
	{"vaultd_oldest_open_seconds", "age of the oldest folder on its way; 0 when there is none", gauge, nil, func(f Facts, add func(float64, ...string)) {
		if f.OldestOpen.IsZero() {
			add(0)
			return
		}
		add(f.At.Sub(f.OldestOpen).Seconds())
	}},
	{"vaultd_last_success_timestamp_seconds", "the newest of the archive's times of success; 0 when there is none", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(unixSeconds(f.LastSuccess))
	}},
	{"vaultd_route_paused_seconds", "for how long a route rests because of a fault of the environment; none while all work", gauge, []string{"route", "code"}, func(f Facts, add func(float64, ...string)) {
		for _, p := range f.Pauses {
			add(f.At.Sub(p.Since).Seconds(), p.Route, p.Code)
		}
	}},
	{"vaultd_drop_paused", "1 while a drop folder cannot be worked in", gauge, []string{"drop"}, func(f Facts, add func(float64, ...string)) {
		for _, d := range f.Drops {
			add(boolValue(d.Paused), d.Name)
		}
	}},
	{"vaultd_drop_listed_timestamp_seconds", "when a drop folder was last looked through; 0 when not yet", gauge, []string{"drop"}, func(f Facts, add func(float64, ...string)) {
		for _, d := range f.Drops {
			add(unixSeconds(d.Listed), d.Name)
		}
	}},
	{"vaultd_drop_free_bytes", "free room on the file system of a drop folder", gauge, []string{"drop"}, func(f Facts, add func(float64, ...string)) {
		for _, d := range f.Drops {
			if d.Free >= 0 {
				add(float64(d.Free), d.Name)
			}
		}
	}},
	{"vaultd_not_taken_folders", "folders and loose files that lie in a drop and are not taken, by reason", gauge, []string{"drop", "reason"}, func(f Facts, add func(float64, ...string)) {
		for _, n := range f.NotTaken {
			add(float64(n.Count), n.Drop, n.Reason)
		}
	}},
	{"vaultd_spool_bytes", "sealed ZIPs that wait for their upload", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(float64(f.SpoolUsed))
	}},
	{"vaultd_spool_max_bytes", "how much may wait at once (spool.max)", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(float64(f.SpoolMax))
	}},
	{"vaultd_state_free_bytes", "free room on the disk of the ledger and the spool", gauge, nil, func(f Facts, add func(float64, ...string)) {
		if f.StateFree >= 0 {
			add(float64(f.StateFree))
		}
	}},
	{"vaultd_ledger_bytes", "size of the ledger's file", gauge, nil, func(f Facts, add func(float64, ...string)) {
		if f.LedgerSize >= 0 {
			add(float64(f.LedgerSize))
		}
	}},
	{"vaultd_ledger_lines_total", "lines of the journal, from the ledger", counter, nil, func(f Facts, add func(float64, ...string)) {
		add(float64(f.Lines))
	}},
	{"vaultd_ledger_commits_total", "transactions since the process began", counter, nil, func(f Facts, add func(float64, ...string)) {
		add(float64(f.Commits))
	}},
	{"vaultd_ledger_changes_total", "changes of entries since the process began", counter, nil, func(f Facts, add func(float64, ...string)) {
		add(float64(f.Changes))
	}},
	{"vaultd_ledger_syncs_total", "syncs of the ledger to the disk since the process began", counter, nil, func(f Facts, add func(float64, ...string)) {
		add(float64(f.Syncs))
	}},
	{"vaultd_file_syncs_total", "other syncs since the process began: file (packages, receipts) or directory (that names came, went or moved; one serves all who wait for it)", counter, []string{"what"}, func(f Facts, add func(float64, ...string)) {
		add(float64(f.FileSyncs), "file")
		add(float64(f.DirectorySyncs), "directory")
	}},
	{"vaultd_catalog_complete", "1 while the catalog has all but the last few seconds; else the bills are missing", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(boolValue(f.CatalogComplete))
	}},
	{"vaultd_billing_used_ratio", "average archived size this year against what is included; 1 is the limit. vault=\"\" is the customer", gauge, []string{"vault"}, func(f Facts, add func(float64, ...string)) {
		for _, b := range f.Bills {
			add(b.Used, b.Vault)
		}
	}},
	{"vaultd_safe_mode", "1 while the ledger may not know everything that was done, so that nothing is taken, sent or removed", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(boolValue(f.SafeMode))
	}},
	{"vaultd_check_timestamp_seconds", "when the last full check of the ledger ended; 0 before the first one has", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(unixSeconds(f.Checked))
	}},
	{"vaultd_check_findings", "what the last full check found: in the ledger, in packages and in claimed folders", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(float64(f.CheckFindings))
	}},
	{"vaultd_config_reload_success", "1 when the configuration was good when it was last read; 0: the one before is kept", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(boolValue(f.ReloadGood))
	}},
	{"vaultd_config_reload_timestamp_seconds", "when the configuration was last read", gauge, nil, func(f Facts, add func(float64, ...string)) {
		add(unixSeconds(f.Reloaded))
	}},
}

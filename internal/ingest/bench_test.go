package ingest_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
	"vaultd/internal/window"
)

// discard is a service that takes everything at once.
type discard struct {
	clock
	serial   atomic.Int64
	uploaded atomic.Int64
	takes    time.Duration // of one upload
}

func (d *discard) Register(_ context.Context, _ archive.VaultID, frozen []archive.RegisterRequest) (archive.RegisterResult, error) {
	a := archive.RegisterResult{Tickets: make(map[archive.ID]archive.Ticket, len(frozen))}
	for _, f := range frozen {
		n := int(d.serial.Add(1))
		a.Tickets[f.ID] = archive.Ticket{Remote: numbered(n), URL: addressed(n), Sent: d.now()}
	}
	return a, nil
}

func (*discard) OmitsMD5(archive.PresignedURL) bool { return false }
func (*discard) HostsWithoutMD5() []string          { return nil }

func (d *discard) Upload(_ context.Context, _ archive.Ticket, p archive.Package) (archive.Digest, string, error) {
	time.Sleep(d.takes)
	d.uploaded.Add(1)
	return p.SHA256, "", nil
}

func (d *discard) Status(_ context.Context, _ archive.VaultID, r archive.RemoteID) (archive.Receipt, error) {
	return archive.Receipt{Remote: r, Status: archive.InProgress}, nil
}

func (d *discard) StatusList(context.Context, archive.VaultID) ([]archive.Receipt, error) {
	return nil, nil
}

// BenchmarkEngine takes tiny documents from the claim to the upload, with a ledger on
// disk and a service that costs nothing: what is left is what the engine costs.
func BenchmarkEngine(b *testing.B) {
	for _, takes := range []time.Duration{0, time.Millisecond} {
		b.Run(fmt.Sprintf("upload=%s", takes), func(b *testing.B) { benchEngine(b, takes) })
	}
}

func benchEngine(b *testing.B, takes time.Duration) {
	const many = 10_000
	for range b.N {
		b.StopTimer()
		dir := b.TempDir()
		kit.Must(b, boltledger.Create(dir, ledger.Info{ID: "bench", Environment: "test", BaseURL: "https://x", Schema: boltledger.Schema, Created: time.Now()}))
		l := kit.Value(boltledger.Open(boltledger.Config{Dir: dir, CommitInterval: benchGather}))(b)
		f, service := &folders{sealed: map[archive.Key]archive.Package{}}, &discard{takes: takes}
		c := ingest.New(ingest.Config{Ledger: l, Index: l, Routes: map[ledger.Route]ingest.Route{ledger.Vault: {Client: service, Asker: service, Workers: 8, BatchSize: 50, BatchWait: 2 * time.Second}}, Planner: &window.Planner{Workers: 8}, Now: service.now,
			Log:     slog.New(slog.DiscardHandler),
			PollMin: time.Hour, PollMax: time.Hour, Grace: 24 * time.Hour, SpoolSpace: func(string) error { return nil }, SyncPackages: func() error { return nil },
			Drops: []ingest.Drop{{Name: "V", Vault: "V", Settle: time.Second, Packer: f, Mover: f, Unavailable: func() error { return nil }}}})
		ctx, stop := context.WithCancel(b.Context())
		ended := make(chan error, 1)
		before := processor(b)
		b.StartTimer()
		go func() { ended <- c.Run(ctx) }()
		for i := range many {
			c.EnterClaimed(archive.NewKey(time.Now()), ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "V", Folder: fmt.Sprint(i), Fingerprint: archive.Digest{1}})
		}
		for service.uploaded.Load() < many {
			time.Sleep(time.Millisecond)
		}
		b.StopTimer()
		commits, _ := l.CommitCounts()
		b.ReportMetric(float64((processor(b)-before).Microseconds())/many, "cpu-us/doc")
		b.ReportMetric(float64(commits)/many, "commits/doc")
		b.ReportMetric(float64(l.SyncCount())/many, "syncs/doc")
		b.ReportMetric(many*float64(b.N)/b.Elapsed().Seconds(), "docs/s")
		stop()
		kit.Must(b, <-ended)
		kit.Must(b, l.Close())
	}
}

// processor is the processor time of this process so far.
func processor(b *testing.B) time.Duration {
	var u syscall.Rusage
	kit.Must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

var benchGather = 25 * time.Millisecond

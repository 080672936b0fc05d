package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/packager"
)

// limitRows measure what the machine and net/http give to a client that does nothing but send finished ZIPs, and how
// near to it vaultd's own client comes, with its policy, its deadlines and its eye on stalled peers.
func (b *bench) limitRows() []row {
	var rows []row
	raw, own := sender(rawClient), sender(ownClient)
	for _, set := range []string{"S", "T"} {
		rows = append(rows,
			row{ID: "put-" + set, Goal: "G5", Title: "finished ZIPs of set " + set + " over TLS: vaultd's client against a raw one",
				A: side{"vaultd's client", b.putRun(set, true, own)}, B: side{"raw client", b.putRun(set, true, raw)}, Warmup: 1,
				Ratios: []ratio{{"files a second", rateRatio, ">= 0.95", atLeast(0.95)}, {"CPU", cpuRatio, "<= 1.2", atMost(1.2)}},
				Counts: []count{{"CPU s/GB", cpuPerGB, "told", nil}, {"peak RssAnon, MiB", peakMiB, "<= 64", atMost(64)}}},
			row{ID: "tls-" + set, Goal: "R1", Title: "finished ZIPs of set " + set + ", raw client: TLS against plain http",
				A: side{"TLS", b.putRun(set, true, raw)}, B: side{"http", b.putRun(set, false, raw)}, Warmup: 1,
				Ratios: []ratio{{"files a second", rateRatio, "told", nil}, {"CPU", cpuRatio, "told", nil}},
				Counts: []count{{"CPU s/GB", cpuPerGB, "told", nil}}},
		)
	}
	return rows
}

func cpuPerGB(s sample) float64 { return quotient(s.CPU.Seconds(), float64(s.Out)/1e9) }

// sender makes a client of the store, once as a daemon does, that sends one finished ZIP to the address granted for it.
type sender func(url, ca string) (send func(context.Context, granted) error, err error)

func (b *bench) putRun(set string, tls bool, client sender) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		zips, err := b.finishedPackages(ctx, set)
		if err != nil {
			return s, err
		}
		f, err := b.startFake(ctx, dir, fakeOptions{TLS: tls})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, f.Stop()) }()
		grants, err := f.registerPackages(ctx, zips)
		if err != nil {
			return s, err
		}
		send, err := client(f.URL, f.CA)
		if err != nil {
			return s, err
		}
		s, err = measureOwnWork(func() error { return sendAll(ctx, grants, send) })
		s.Docs = len(zips)
		for _, z := range zips {
			s.Out += z.Size
		}
		return s, err
	}
}

// rawClient sends with nothing but net/http.
func rawClient(_, ca string) (func(context.Context, granted) error, error) {
	client, err := plainClient(ca, bareWorkers)
	return func(ctx context.Context, grant granted) error { return send(ctx, client, grant) }, err
}

// ownClient sends with vaultd's client.
func ownClient(url, ca string) (func(context.Context, granted) error, error) {
	client, err := bareClient(url, ca)
	return func(ctx context.Context, grant granted) error {
		_, _, err := client.Upload(ctx, grant.ticket, grant.zip)
		return err
	}, err
}

// sendAll sends by as many as vaultd's workers.
func sendAll(ctx context.Context, grants []granted, send func(context.Context, granted) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(bareWorkers)
	for _, grant := range grants {
		g.Go(func() error { return send(ctx, grant) })
	}
	return g.Wait()
}

// registerPackages registers finished ZIPs under identities that nobody has used.
func (f *fake) registerPackages(ctx context.Context, zips []archive.Package) ([]granted, error) {
	client, err := bareClient(f.URL, f.CA)
	if err != nil {
		return nil, err
	}
	var grants []granted
	const batch = 500
	for done := 0; done < len(zips); done += batch {
		some := zips[done:min(done+batch, len(zips))]
		frozen := make([]archive.RegisterRequest, len(some))
		for i := range some {
			frozen[i] = archive.RegisterRequest{ID: archive.ID(uuid.New()), Metadata: metadata(done + i)}
		}
		answer, err := client.Register(ctx, benchVault, frozen)
		if err != nil {
			return nil, err
		}
		for i, z := range some {
			grants = append(grants, granted{answer.Tickets[frozen[i].ID], z})
		}
	}
	return grants, nil
}

// finishedPackages are the finished ZIPs of a data set, at the default level, made the first time that they are asked for.
func (b *bench) finishedPackages(ctx context.Context, name string) ([]archive.Package, error) {
	set, err := b.dataSet(ctx, name)
	if err != nil {
		return nil, err
	}
	dir, err := b.makeOnce(ctx, fmt.Sprintf("zips-%s-%d-seed%d", name, set.Docs, b.seed), func(ctx context.Context, dir string) error {
		for _, folder := range set.folderPaths() {
			if _, err := buildPackage(ctx, folder, "default", filepath.Join(dir, filepath.Base(folder)+".zip")); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	zips := make([]archive.Package, 0, set.Docs)
	for _, folder := range set.folderPaths() {
		z, err := measured(filepath.Join(dir, filepath.Base(folder)+".zip"))
		if err != nil {
			return nil, err
		}
		zips = append(zips, z)
	}
	return zips, nil
}

// packRules are those of a drop folder that takes what has a marker.
func packRules(level string) packager.Rules {
	return packager.Rules{Vault: benchVault, Complete: "marker", Compression: level}
}

// buildPackage seals one folder as vaultd does.
func buildPackage(ctx context.Context, folder, level, to string) (s packager.Sealed, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return s, err
	}
	s, err = buildAt(ctx, root, packRules(level), to)
	return s, errors.Join(err, root.Close())
}

// buildAt seals root as the ZIP at zipPath.
func buildAt(ctx context.Context, root *os.Root, rules packager.Rules, zipPath string) (s packager.Sealed, err error) {
	spool, err := durable.Open(filepath.Dir(zipPath), nil)
	if err != nil {
		return s, err
	}
	s, err = packager.BuildPackage(ctx, root, rules, spool, filepath.Base(zipPath))
	s.Package.Path = zipPath
	return s, errors.Join(err, spool.Close())
}

// measureOwnWork measures work that this process does itself.
func measureOwnWork(work func() error) (s sample, err error) {
	g := watchProcess(os.Getpid())
	cpu, began := ownCPU(), time.Now()
	err = work()
	s.Wall, s.CPU = time.Since(began), ownCPU()-cpu
	g.takeSample()
	g.stop()
	_, s.PeakAnon, _ = g.readMemory()
	return s, err
}

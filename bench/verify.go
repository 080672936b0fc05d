package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"vaultd/internal/ledger/boltledger"
)

// verifiedLedger is how many documents the smaller ledger of these rows has.
const verifiedLedger = 200_000

// verifyRows measure a whole verification, and one that continues from a
// checked copy. Both are the program as people call it, without a daemon.
func (b *bench) verifyRows() []row {
	return append(b.verifyRowsOf(b.scaleForQuick(verifiedLedger)), b.verifyRowsOf(b.scaleForQuick(largeLedger))...)
}

// wholeLimit is how long a row may take whose runs each read a large ledger more than once.
const wholeLimit = time.Hour

func (b *bench) verifyRowsOf(docs int) []row {
	memory := count{"peak RssAnon, MiB", peakMiB, "<= 128", atMost(128)}
	return []row{
		{ID: "verify-" + short(docs), Goal: "verify", Title: fmt.Sprintf("a ledger of %s documents, all of it verified", short(docs)),
			Limit: wholeLimit, A: side{"vaultd verify --whole", b.runVerify(docs, 0, "verify", "--whole")},
			Counts: []count{memory, {"CPU a document, µs", func(s sample) float64 { return cpuPerDoc(s) * 1e6 }, "<= 60", atMost(60)}}},
		{ID: "verify-again-" + short(docs), Goal: "verify", Title: fmt.Sprintf("a ledger of %s documents, verified again after 1 %% more", short(docs)),
			Limit: wholeLimit, A: side{"vaultd verify", b.runVerify(docs, docs/100, "verify")},
			Counts: []count{memory, {"wall, s", func(s sample) float64 { return s.Wall.Seconds() }, "<= 1", atMost(1)}}},
	}
}

// runVerify runs a verification of a filled ledger. With more documents it verifies the whole first, and then adds them.
func (b *bench) runVerify(docs, more int, args ...string) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		in, err := b.installVerified(ctx, dir, docs, more)
		if err != nil {
			return s, err
		}
		s, err = in.measureCommand(ctx, args...)
		s.Docs = docs
		return s, err
	}
}

// installVerified installs vaultd with a copy of a filled ledger. With more documents it verifies the whole first, and then adds them.
func (b *bench) installVerified(ctx context.Context, dir string, docs, more int) (*installation, error) {
	state := filepath.Join(dir, "state")
	filled, err := b.ledger(ctx, docs, 0)
	if err == nil {
		err = copyState(filled, state)
	}
	if err != nil {
		return nil, err
	}
	in, err := b.installBeside(ctx, dir, setup{State: state})
	if err != nil || more == 0 {
		return in, err
	}
	if _, err := in.measureCommand(ctx, "verify", "--whole"); err != nil {
		return nil, err
	}
	return in, addDocuments(ctx, state, docs, more)
}

// measureCommand runs a command without a daemon, which must end well.
func (in *installation) measureCommand(ctx context.Context, args ...string) (s sample, err error) {
	var said bytes.Buffer
	cmd := child(ctx, in.bin, append([]string{"--config", in.configPath()}, args...)...)
	cmd.Stdout, cmd.Stderr = &said, &said
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return s, fmt.Errorf("start vaultd: %w", err)
	}
	g := watchProcess(cmd.Process.Pid)
	err = cmd.Wait()
	g.stop()
	s.Wall, s.CPU = time.Since(began), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
	_, s.PeakAnon, _ = g.readMemory()
	if err != nil {
		return s, fmt.Errorf("vaultd %s: %w: %s", args[0], err, lastLines(said.Bytes()))
	}
	return s, nil
}

// addDocuments adds documents that are archived and kept.
func addDocuments(ctx context.Context, state string, docs, more int) (err error) {
	l, err := boltledger.Open(boltledger.Config{Dir: state})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	fresh := &lives{at: time.Now(), n: docs, rng: rand.NewChaCha8([32]byte{'m'})}
	for range more {
		rs, err := l.Apply(ctx, fresh.next().whole(false))
		if err = errors.Join(err, rs[0].Err); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// verifiedLedger is how many documents the smaller ledger of these rows has.
const verifiedLedger = 200_000

// verifyRows compare a whole verification with what it cannot do without, and one that goes on from its checkpoint with a
// whole one. Both are the program as people call it, without a daemon.
func (b *bench) verifyRows() []row {
	return append(b.verifyRowsOf(b.scaleForQuick(verifiedLedger)), b.verifyRowsOf(b.scaleForQuick(largeLedger))...)
}

// wholeLimit is how long a row may take whose runs each read a large ledger more than once.
const wholeLimit = time.Hour

func (b *bench) verifyRowsOf(docs int) []row {
	memory := count{"peak RssAnon, MiB", peakMiB, "<= 128", atMost(128)}
	perDoc := count{"CPU a document, µs", func(s sample) float64 { return cpuPerDoc(s) * 1e6 }, "told", nil}
	whole := side{"vaultd verify --whole", b.runVerify(docs, 0, "verify", "--whole")}
	return []row{
		{ID: "verify-" + short(docs), Goal: "verify", Title: fmt.Sprintf("a ledger of %s documents, all of it verified", short(docs)),
			Limit: wholeLimit, A: whole, B: side{"SHA-256 of ledger.db, and encoding/json over each line, on one core", b.readLedger(docs)},
			Ratios: []ratio{{"wall", wallRatio, "<= 4", atMost(4)}, {"CPU", cpuRatio, "told", nil}},
			Counts: []count{memory, perDoc}},
		{ID: "verify-again-" + short(docs), Goal: "verify", Title: fmt.Sprintf("a ledger of %s documents, verified again after 1 %% more", short(docs)),
			Limit: wholeLimit, A: side{"vaultd verify", b.runVerify(docs, docs/100, "verify")}, B: whole,
			Ratios: []ratio{{"wall", wallRatio, "<= 0.05", atMost(0.05)}, {"CPU", cpuRatio, "told", nil}},
			Counts: []count{memory}},
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

// readLedger computes the SHA-256 of the ledger's file and decodes each line of its journal.
func (b *bench) readLedger(docs int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		filled, err := b.ledger(ctx, docs, 0)
		if err == nil {
			err = copyState(filled, dir)
		}
		if err != nil {
			return s, err
		}
		l, err := boltledger.Open(boltledger.Config{Dir: dir})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		f, err := os.Open(filepath.Join(dir, "ledger.db"))
		if err != nil {
			return s, err
		}
		defer f.Close()
		before, began := ownCPU(), time.Now()
		if _, err := io.Copy(sha256.New(), f); err != nil {
			return s, err
		}
		err = l.Lines(1, func(_ uint64, line []byte) error {
			var decoded ledger.Line
			return json.Unmarshal(line, &decoded)
		})
		s.Wall, s.CPU, s.Docs = time.Since(began), ownCPU()-before, docs
		return s, err
	}
}

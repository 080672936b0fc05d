package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/archive"
	"vaultd/internal/statedir"
	"vaultd/internal/test/kit"
)

// I15, I26: a ledger that a process left open is probed by the next one. If its
// pages are damaged, every start and every command says so, and the file stays
// as it is. A daemon goes on running for that.
func TestRun_I15_I26_ALedgerLeftOpen(t *testing.T) {
	s := newShelf(t)
	s.forDaemon()
	for i := range 20 {
		s.send(fmt.Sprint("Huber ", i), noon, archive.RemoteID(fmt.Sprint("bum-", i)))
	}
	kit.Must(t, s.ledger.Close())
	file, marker := filepath.Join(s.cfg.StateDir, "ledger.db"), filepath.Join(s.cfg.StateDir, "ledger.opening")
	leaveOpen := func() { kit.Must(t, os.WriteFile(marker, nil, 0o600)) }

	leaveOpen()                                             // as a kill does
	out, errs, _ := runHere("--config", s.config, "doctor") // it answers at once
	kit.Holds(t, "doctor", out+errs, "FAIL  ledger: ", "its pages are unchecked since", "do: start vaultd, which checks them first")
	_, _, code := runHere("--config", s.config, "check")
	kit.Want(t, "exit code of check", code, 0)
	kit.Want(t, "the marker after them", kit.Err(os.Lstat(marker)), nil)

	out, errs, code = runHere("--config", s.config, "status")
	kit.Holds(t, "what status says while it waits", errs, "its pages are checked first")
	kit.Check(t, code == 0 || code == exitPerson, "status of a sound ledger that was left open: exit %d\n%s%s", code, out, errs)
	kit.Fails(t, "the marker after it", kit.Err(os.Lstat(marker)), os.ErrNotExist)
	_, errs, _ = runHere("--config", s.config, "verify", "--whole")
	kit.Lacks(t, "a check of a ledger that was closed", errs, "a process ended")

	spoilNames(t, file)
	leaveOpen()
	before := kit.Value(os.ReadFile(file))(t)
	for _, args := range [][]string{{"run", "--once"}, {"run", "--once"}, {"status"}, {"verify"}} {
		out, errs, code := runHere(append([]string{"--config", s.config}, args...)...)
		kit.Check(t, code != 0, "%q: exit 0, want a refusal", args)
		kit.Holds(t, args[0], out+errs, "the ledger is damaged: ")
		kit.Want(t, "the marker after "+args[0], kit.Err(os.Lstat(marker)), nil)
	}
	// The daemon runs, and says so to whoever asks.
	ctx, stop := context.WithCancel(t.Context())
	ended, log := make(chan int, 1), &kit.Text{}
	go func() {
		ended <- program.Run(ctx, []string{"--config", s.config, "run"}, strings.NewReader(""), log, log, os.LookupEnv)
	}()
	kit.Await(t, "the refusal", func() bool { return strings.Contains(log.String(), "SAFE MODE: the ledger is not opened") })
	kit.Await(t, "its answer", func() bool {
		_, errs, code = runHere("--config", s.config, "status")
		return code == exitIO && strings.Contains(errs, "the ledger is damaged: ") && strings.Contains(errs, "Keep the file")
	})
	stop()
	kit.Want(t, "its exit code", <-ended, 0)
	kit.Want(t, "the marker after it", kit.Err(os.Lstat(marker)), nil)
	kit.Check(t, bytes.Equal(before, kit.Value(os.ReadFile(file))(t)), "the file was changed, want it as it was")

	defer kit.Value(statedir.Lock(s.cfg.StateDir, "vaultd"))(t).Close() // a command has it, and the start is stopped
	kit.Want(t, "exit code of a stopped start", program.Run(ctx, []string{"--config", s.config, "run"}, strings.NewReader(""), log, log, os.LookupEnv), 0)
	kit.Holds(t, "what it says", log.String(), "stopped before the ledger was open")
	kit.Lacks(t, "what it says", log.String(), "something hangs")
}

// spoilNames changes the number of the first page of a bucket that opening skips.
func spoilNames(t *testing.T, file string) {
	t.Helper()
	db := kit.Value(bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second}))(t)
	var at int64
	err := db.View(func(tx *bbolt.Tx) error {
		at = int64(tx.Bucket([]byte("names")).Root()) * int64(db.Info().PageSize)
		return nil
	})
	kit.Must(t, errors.Join(err, db.Close()))
	kit.Need(t, at > 0, "the bucket has no page, want one")
	f := kit.Value(os.OpenFile(file, os.O_WRONLY, 0))(t)
	_, err = f.WriteAt([]byte{0xff, 0xff}, at)
	kit.Must(t, errors.Join(err, f.Close()))
}

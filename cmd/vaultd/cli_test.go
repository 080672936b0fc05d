package main_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/bbolt"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/test/kit"
)

// In script tests the program is this test binary under another name.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // many daemons in one process: it is short of time, not of memory
	testscript.Main(m, map[string]func(){"vaultd": func() {
		os.Exit(program.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
	}})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"expand": expand,
			"code":   code,
		},
	})
}

// expand puts the script's directory where a file says WORK.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := strings.ReplaceAll(ts.ReadFile(name), "WORK", ts.Getenv("WORK"))
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// code runs a program that must end with an exit code: code N program arguments.
func code(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("run: %v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// A ledger whose form is not known ends every command with 78 and the next step to take.
func TestExit_I28_AFormThatIsNotKnown(t *testing.T) {
	for schema, hint := range map[string]string{"99": "install the newer vaultd", "1": "vaultd rebuild"} {
		s := newShelf(t)
		kit.Must(t, s.ledger.Close())
		db, err := bbolt.Open(filepath.Join(s.cfg.StateDir, "ledger.db"), 0o600, nil)
		kit.Must(t, err)
		err = db.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte("meta"))
			return errors.Join(meta.Put([]byte("schema"), []byte(schema)), meta.Put([]byte("form"), []byte("another one")))
		})
		kit.Must(t, errors.Join(err, db.Close()))
		for _, command := range []string{"list", "status", "verify"} {
			if out, errs, code := runHere("--config", s.config, command); code != exitConfig || !strings.Contains(errs, hint) {
				t.Errorf("schema %s: %s: exit %d: %s%s", schema, command, code, out, errs)
			}
		}
	}
}

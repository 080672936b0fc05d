package selfcheck

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/kit"
)

const nobody = 65534

// How the child of a test ends; empty: with an answer.
const (
	childEnds = "VAULTD_TEST_CHILD_ENDS"
	asAnother = "VAULTD_TEST_AS_ANOTHER" // root works for another user
	childPID  = "VAULTD_TEST_CHILD_PID"  // file that a child that hangs writes its number to
)

// The child is this test binary.
func TestMain(m *testing.M) {
	if len(os.Args) != 2 || os.Args[1] != ChildCommand {
		os.Exit(m.Run())
	}
	PrepareChild()
	switch end := os.Getenv(childEnds); end {
	case "":
		os.Exit(RunChild(context.Background(), os.Stdin, os.Stdout))
	case "panic":
		panic("page 7: unexpected page type")
	case "circle":
		_, _ = os.Stderr.WriteString(strconv.Itoa(walkCircle(1)))
	case "memory":
		fmt.Fprintln(os.Stderr, "fatal error: runtime: out of memory")
		os.Exit(2)
	case "unknown":
		fmt.Fprintln(os.Stderr, "flag provided but not defined")
		os.Exit(2)
	case "hang":
		if err := os.WriteFile(os.Getenv(childPID), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
			os.Exit(1)
		}
		time.Sleep(time.Hour)
	default:
		n, _ := strconv.Atoi(end)
		_ = syscall.Kill(os.Getpid(), syscall.Signal(n)) // it hangs where that fails
		time.Sleep(time.Hour)
	}
}

// walkCircle follows pages as bbolt does: one by one, each from the one before.
func walkCircle(page int) int { return walkCircle(page^1) + 1 } //lint:ignore SA5007 it is to end the process

func (p *place) inChild() Verification {
	how := p.how()
	how.Executable = "/proc/self/exe"
	return how
}

// I15: the check of a copy in a child finds what this process finds, and leaves
// a checkpoint.
func TestChild_I15_FindsTheSame(t *testing.T) {
	p := newPlace(t, "ledger-1")
	p.finish(p.send())
	p.send()
	got := kit.Value(p.inChild().VerifyCopy(t.Context(), p.Ledger.Ledger, 0))(t)
	kit.Want(t, "a checkpoint", kit.Err(os.Lstat(filepath.Join(p.Dir, CheckpointName))), nil)
	kit.Must(t, os.Remove(filepath.Join(p.Dir, CheckpointName)))
	want := kit.Value(p.how().VerifyCopy(t.Context(), p.Ledger.Ledger, 0))(t)
	kit.Check(t, got.OK() && got.Lines > 0, "the child found %+v, want nothing in some lines", got)
	kit.Want(t, "the child's answer", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))

	p.spoilPages()
	got = kit.Value(p.inChild().VerifyCopy(t.Context(), p.Ledger.Ledger, 0))(t)
	want = kit.Value(p.how().VerifyCopy(t.Context(), p.Ledger.Ledger, 0))(t)
	kit.Check(t, got.IsDamaged(), "the child found %+v, want damage", got)
	kit.Want(t, "the child's answer about damage", fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want))
}

// I15, I26: damage that ends the process that checks ends the child alone, and is
// reported as damage. After any other end the ledger counts as unchecked, and no
// checkpoint is left.
func TestChild_I26_HowItEnds(t *testing.T) {
	p := newPlace(t, "ledger-1")
	p.finish(p.send())
	c := &Checker{Verification: p.inChild(), Ledger: p.Ledger.Ledger}
	const damaged, mayPass, other = "damaged", "may pass", "other"
	for end, want := range map[string]string{
		"panic": damaged, "circle": damaged, "unknown": other, strconv.Itoa(int(syscall.SIGSEGV)): damaged, strconv.Itoa(int(syscall.SIGBUS)): damaged,
		"memory": mayPass, strconv.Itoa(int(syscall.SIGKILL)): mayPass, strconv.Itoa(int(syscall.SIGTERM)): mayPass,
	} {
		t.Setenv(childEnds, end)
		r := c.Check(t.Context())
		kit.Check(t, (len(r.Ledger) > 0) == (want == damaged) && (r.Failed == "") == (want == damaged) && r.MayPass == (want == mayPass),
			"%s: the check found %q and failed with %q, may pass: %t, want %s", end, r.Ledger, r.Failed, r.MayPass, want)
		kit.Fails(t, "a checkpoint", kit.Err(os.Lstat(filepath.Join(p.Dir, CheckpointName))), os.ErrNotExist)
	}
}

// I15, I26: a probe that finds damage, ends by it, or takes too long says which.
func TestProbe_I15_I26_WhatItSays(t *testing.T) {
	p := newPlace(t, "ledger-1")
	p.finish(p.send())
	p.close()
	probe := func(within time.Duration) error {
		f := kit.Value(os.Open(filepath.Join(p.Dir, "ledger.db")))(t)
		defer f.Close()
		ctx, cancel := context.WithTimeoutCause(t.Context(), within, ErrSlow)
		defer cancel()
		return Probe(ctx, "/proc/self/exe", f)
	}
	kit.Must(t, probe(time.Minute))
	t.Setenv(childPID, filepath.Join(t.TempDir(), "pid"))
	for end, want := range map[string]string{"hang": ErrSlow.Error(), "panic": "the ledger is damaged: reading its pages ended the process", "memory": "the process that checks the ledger ended without an answer: "} {
		t.Setenv(childEnds, end)
		within := time.Minute
		if end == "hang" {
			within = time.Second
		}
		err := probe(within)
		kit.Check(t, err != nil && strings.HasPrefix(err.Error(), want) && errors.Is(err, ErrSlow) == (end == "hang"), "a child ends by %s: %v, want %q", end, err, want)
	}
	t.Setenv(childEnds, "")
	p.spoilPages()
	_, damaged := errors.AsType[*ledger.DamageError](probe(time.Minute))
	kit.Want(t, "damage", damaged, true)
}

// The child ends with the caller's context, and with the process that started it.
func TestChild_I21_EndsWithItsParent(t *testing.T) {
	if os.Getenv(childPID) != "" { // the parent, which is killed
		p := newPlace(t, "ledger-1")
		if os.Getenv(asAnother) != "" { // as a command of root works as the owner of the state directory
			kit.Must(t, errors.Join(os.Chmod(filepath.Dir(p.Dir), 0o755), os.Chown(p.Dir, nobody, nobody), syscall.Setresuid(-1, nobody, -1)))
		}
		_, err := p.inChild().VerifyCopy(t.Context(), p.Ledger.Ledger, 0)
		t.Fatal(err)
	}
	for _, as := range []string{"", "another"} {
		t.Run("Parent"+as, func(t *testing.T) {
			if as != "" && os.Getuid() != 0 {
				kit.Missing(t, "root")
			}
			dir := t.TempDir()
			kit.Must(t, errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o777)))
			file := filepath.Join(dir, "pid")
			parent := exec.Command(os.Args[0], "-test.run=^TestChild_I21_EndsWithItsParent$")
			parent.Env = append(os.Environ(), "TMPDIR="+dir, childEnds+"=hang", childPID+"="+file, asAnother+"="+as) // it removes nothing
			kit.Must(t, parent.Start())
			awaitEnd := beginChild(t, file)
			kit.Must(t, parent.Process.Kill())
			_ = parent.Wait() // it was killed
			awaitEnd()
			left := kit.Value(filepath.Glob(dir + "/*/*/.*"))(t)
			left = append(left, kit.Value(filepath.Glob(dir+"/*/*/"+CheckpointName))(t)...)
			kit.Want(t, "copies and checkpoints that it left", len(left), 0)
			kit.Want(t, "markers", len(kit.Value(filepath.Glob(dir+"/*/*/ledger.opening"))(t)), 1)
		})
	}

	file := filepath.Join(t.TempDir(), "pid")
	t.Setenv(childEnds, "hang")
	t.Setenv(childPID, file+"2")
	p := newPlace(t, "ledger-1")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := p.inChild().VerifyCopy(ctx, p.Ledger.Ledger, 0)
		done <- err
	}()
	awaitEnd := beginChild(t, file+"2")
	cancel()
	kit.Fails(t, "a check whose caller gave up", <-done, context.Canceled)
	awaitEnd()
}

// I12: a child's answer arrives whole: encoding/gob leaves out unexported fields.
func TestChild_I12_ItsAnswerIsWhole(t *testing.T) {
	seen := map[reflect.Type]bool{reflect.TypeFor[time.Time](): true}
	var look func(reflect.Type, string)
	look = func(typ reflect.Type, name string) {
		if seen[typ] {
			return
		}
		seen[typ] = true
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array:
			look(typ.Elem(), name)
		case reflect.Map:
			look(typ.Key(), name)
			look(typ.Elem(), name)
		case reflect.Struct:
			for f := range typ.Fields() {
				kit.Check(t, f.IsExported(), "%s.%s is unexported, want it sent", name, f.Name)
				look(f.Type, name+"."+f.Name)
			}
		case reflect.Interface, reflect.Func, reflect.Chan:
			t.Errorf("%s is of kind %s, want one that is sent", name, typ.Kind())
		}
	}
	look(reflect.TypeFor[answer](), "answer")
	look(reflect.TypeFor[proof.Sums](), "Sums")
}

// I21: one copy is made and checked at a time. A caller that gives up waiting
// leaves nothing, and each check ends its turn, whatever it finds.
func TestCheckCopy_I21_OneAtATime(t *testing.T) {
	synctest.Test(t, checkOneCopyAtATime)
}

func checkOneCopyAtATime(t *testing.T) {
	p := newPlace(t, "ledger-1")
	p.finish(p.send())
	end := kit.Value(p.Ledger.AwaitCopyTurn(t.Context()))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.how().VerifyCopy(ctx, p.Ledger.Ledger, 0)
	kit.Fails(t, "a check whose caller gave up", err, context.Canceled)
	done := make(chan error, 1)
	go func() { done <- kit.Err(p.how().VerifyCopy(t.Context(), p.Ledger.Ledger, 0)) }()
	synctest.Wait()
	kit.Want(t, "checks that ended while another copy was checked", len(done), 0)
	end()
	kit.Must(t, <-done)
	for _, keep := range []int64{0, math.MaxInt64 / 2} { // the second finds no room, unless a clone needs none
		_, err = p.how().VerifyCopy(t.Context(), p.Ledger.Ledger, keep)
		kit.Want(t, "checked", err == nil, keep == 0 || canClone(t, p.Dir))
	}
	p.spoilPages()
	kit.Check(t, kit.Value(p.how().VerifyCopy(t.Context(), p.Ledger.Ledger, 0))(t).IsDamaged(), "no damage found, want it found in two copies")
	end = kit.Value(p.Ledger.AwaitCopyTurn(t.Context()))(t)
	end()
}

// beginChild waits for a child that hangs, and returns what waits for its end.
func beginChild(t *testing.T, file string) (awaitEnd func()) {
	t.Helper()
	var pid string
	kit.Await(t, "the child", func() bool {
		b, err := os.ReadFile(file)
		pid = string(b)
		return err == nil && pid != ""
	})
	b := kit.Value(os.ReadFile("/proc/" + pid + "/oom_score_adj"))(t)
	kit.Want(t, "oom_score_adj of the child", strings.TrimSpace(string(b)), "1000")
	return func() {
		t.Helper()
		kit.Await(t, "the end of the child", func() bool {
			b, err := os.ReadFile("/proc/" + pid + "/stat")
			return err != nil || strings.Contains(string(b), ") Z ")
		})
	}
}

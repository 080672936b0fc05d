// Command vaultbench measures vaultd against the limits of the machine and against other ways to do the same, on
// loopback alone. bench/README.md tells what it measures and how to read it.
//
// It believes pairs only: both sides of a row run in turn, fresh each time, and
// what counts is the median of the ratios within the pairs. If these lie too
// far apart it says so and gives no verdict. What does not depend on the
// machine (syncs, calls, bytes, memory) is counted, and judged always.
//
// It keeps its data sets in its work directory and changes nothing outside of that and of what -out and -doc name.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT) //lint:ignore forbidigo here it begins
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

const usage = `vaultbench measures vaultd on this machine. See bench/README.md.

  vaultbench all [flags]          run all rows, or those of -only, and print the table
  vaultbench table [flags]        print the table of all rows as they were last run
  vaultbench list                 what would be run
  vaultbench gen [flags] SET DIR  write a data set: S, T, L, xml, pdf or jpeg
  vaultbench fill [flags] N DIR   make a ledger of N documents
  vaultbench size DIR             where the bytes of a ledger are, a document, by bucket
  vaultbench fake [flags]         run the stand-in of the service alone

Each command explains its flags with -h.
`

// errGoals says that a goal was not reached; the table says which.
var errGoals = errors.New("not every goal is reached")

// run executes one command line and returns its exit code: 1 where a goal was not reached or something failed, 2 where
// the command line makes no sense.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	commands := map[string]func(context.Context, *flags) error{"all": all, "table": printTable, "list": list, "gen": gen, "fill": fill, "size": size, "fake": runFake}
	if len(args) == 0 || commands[args[0]] == nil {
		fmt.Fprint(stderr, usage)
		return 2
	}
	f := &flags{FlagSet: flag.NewFlagSet(args[0], flag.ContinueOnError), args: args[1:], stdout: stdout}
	f.SetOutput(stderr)
	err := commands[args[0]](ctx, f)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.As(err, new(usageError)):
		fmt.Fprintf(stderr, "vaultbench %s: %v\n", args[0], err)
		return 2
	}
	fmt.Fprintf(stderr, "vaultbench %s: %v\n", args[0], err)
	return 1
}

// usageError is the caller's fault.
type usageError struct{ error }

// flags is one command line.
type flags struct {
	*flag.FlagSet
	args   []string
	stdout io.Writer
}

// read parses the command line and returns its words behind the flags, of which it must have so many.
func (f *flags) read(words ...string) ([]string, error) {
	if err := f.Parse(f.args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return nil, err
		}
		return nil, usageError{err}
	}
	if f.NArg() != len(words) {
		return nil, usageError{fmt.Errorf("usage: vaultbench %s [flags] %s", f.Name(), strings.Join(words, " "))}
	}
	return f.Args(), nil
}

// bench adds the flags that most commands have.
func (f *flags) bench() *bench {
	b := &bench{log: slog.New(slog.NewTextHandler(f.Output(), nil)), weights: map[string]weight{}}
	f.BoolVar(&b.quick, "quick", false, "a tenth of all data")
	f.IntVar(&b.pairs, "pairs", 5, "pairs of runs of each row")
	f.Uint64Var(&b.seed, "seed", 1, "of all data")
	f.StringVar(&b.vaultd, "vaultd", "", "`path` of the vaultd to measure (default: built from this module)")
	f.StringVar(&b.work, "work", workDir(), "`directory` for data sets, ledgers and runs: about 25 GB at full size, kept")
	return b
}

// workDir is where a user keeps what can be made again, which is on a disk.
func workDir() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "vaultbench")
}

const (
	defaultOut = "vaultbench-out"
	runsFile   = "runs.jsonl"
)

func all(ctx context.Context, f *flags) error {
	b := f.bench()
	only := f.String("only", "", "`list` of goals and rows, as in G3,zip-default-S")
	out := f.String("out", defaultOut, "`directory` for runs.jsonl and table.md")
	if _, err := f.read(); err != nil {
		return err
	}
	b.named = b.vaultd != ""
	rows, err := chosen(b.rows(), *only)
	if err != nil {
		return err
	}
	if err := errors.Join(os.MkdirAll(b.work, 0o770), os.MkdirAll(*out, 0o770)); err != nil {
		return err
	}
	release, err := b.lockWorkDir()
	if err != nil {
		return err
	}
	defer release()
	log, err := os.OpenFile(filepath.Join(*out, runsFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o660)
	if err != nil {
		return err
	}
	r := &report{machine: b.describeMachine(ctx), at: time.Now()}
	r.sittings = []machine{r.machine}
	runErr := errors.Join(json.NewEncoder(log).Encode(r.machine), b.runAll(ctx, rows, log, r))
	text := r.asMarkdown()
	fmt.Fprint(f.stdout, text)
	err = errors.Join(runErr, log.Close(), os.WriteFile(filepath.Join(*out, "table.md"), []byte(text), 0o660))
	if err == nil && r.hasFailed() {
		return errGoals
	}
	return err
}

// chosen are the rows that were asked for, by goal or by name.
func chosen(rows []row, only string) ([]row, error) {
	if only == "" {
		return rows, nil
	}
	var out []row
	wanted := strings.FieldsFunc(only, func(r rune) bool { return r == ',' || r == ' ' })
	for _, w := range wanted {
		if !slices.ContainsFunc(rows, func(r row) bool { return r.is(w) }) {
			return nil, usageError{fmt.Errorf("-only %s: there is no such goal or row; see vaultbench list", w)}
		}
	}
	for _, r := range rows {
		if slices.ContainsFunc(wanted, r.is) {
			out = append(out, r)
		}
	}
	return out, nil
}

// is reports whether name names the row, or one of its goals.
func (r row) is(name string) bool {
	return r.ID == name || slices.Contains(strings.Fields(r.Goal), name)
}

func list(_ context.Context, f *flags) error {
	b := f.bench()
	if _, err := f.read(); err != nil {
		return err
	}
	for _, r := range b.rows() {
		fmt.Fprintf(f.stdout, "%-20s %-12s %s\n", r.ID, r.Goal, r.Title)
		if r.Missing != "" {
			fmt.Fprintf(f.stdout, "%-20s %-12s is not run: %s\n", "", "", r.Missing)
		}
	}
	return nil
}

func gen(ctx context.Context, f *flags) error {
	seed := f.Uint64("seed", 1, "of all that is chance")
	docs := f.Int("docs", 0, "number of documents (default: that of the set)")
	words, err := f.read("SET", "DIR")
	if err != nil {
		return err
	}
	r, ok := recipes()[words[0]]
	if !ok {
		return usageError{fmt.Errorf("there is no data set %q", words[0])}
	}
	if *docs > 0 {
		r.docs = *docs
	}
	if err := os.MkdirAll(words[1], 0o770); err != nil {
		return err
	}
	return r.writeSet(ctx, words[0], *seed, words[1])
}

func fill(ctx context.Context, f *flags) error {
	open := f.Int("open", 0, "how many of them are uploaded and wait for the service's word; the others are archived and kept")
	together := f.Int("together", 0, "how many of them take each step of their lives in one commit, as in production; 0: each its whole life at once, which is faster")
	words, err := f.read("N", "DIR")
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(words[0])
	if err != nil || n < 0 || *open > n || *together < 0 || *together > filling {
		return usageError{fmt.Errorf("%q is no number of documents", words[0])}
	}
	if err := os.MkdirAll(words[1], 0o700); err != nil {
		return err
	}
	return fillLedger(ctx, words[1], n, *open, *together)
}

func runFake(ctx context.Context, f *flags) error {
	var o fakeOptions
	f.BoolVar(&o.TLS, "tls", false, "speak TLS, with a certificate that is its own authority")
	f.StringVar(&o.Listen, "listen", "127.0.0.1:0", "loopback `address` to listen on")
	f.StringVar(&o.Disk, "disk", "", "`directory` for what it is sent (default: it is counted and thrown away)")
	f.BoolVar(&o.Verify, "verify", false, "hold each body against its Content-MD5")
	f.BoolVar(&o.Busy, "busy", false, "have all documents of filled ledgers too, and still be archiving them")
	f.IntVar(&o.Index, "index", 0, "its index has the documents of a ledger that was filled with so many")
	f.BoolVar(&o.Rewritten, "rewritten", false, "the index writes amounts otherwise than they were sent")
	f.BoolVar(&o.Lax, "lax", false, "take a body that ended early for a whole one where no Content-MD5 came with it, as some stores do")
	f.DurationVar(&o.Delay, "delay", 0, "before each answer")
	f.StringVar(&o.Faults, "faults", "", "`op:kind:rate,…` as in store:503:0.05,store:reset:0.01,batch:expired:0.1")
	f.DurationVar(&o.Window, "window", 15*time.Minute, "life of an upload address")
	f.DurationVar(&o.ArchiveAfter, "archive-after", 0, "time from the upload to archived")
	f.Uint64Var(&o.Seed, "seed", 1, "of what happens by chance")
	f.StringVar(&o.Store, "store", "", "base `address` of another store that its addresses lead to (default: its own)")
	dir := f.String("dir", ".", "`directory` for its certificate, ca.pem")
	if _, err := f.read(); err != nil {
		return err
	}
	return serveFake(ctx, *dir, o, f.stdout)
}

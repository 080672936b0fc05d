package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"vaultd/internal/config"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

func (a *app) checkCommand() *cobra.Command {
	var schema, show, offline bool
	c := &cobra.Command{
		Use:   "check",
		Short: "the configuration, checked without touching anything",
		Long: `Reads the configuration and says everything that is wrong with it at once: the file,
the line, what is wrong and what would be right. It also looks whether state_dir lies
on a local disk, with no link in the place of a folder of vaultd's own, and whether the
secret can be read, and says which drop folders the user who asks could not work in now.
As root it checks with the rights of the user that state_dir belongs to.
It then asks the archive which vaults it lists, and names a vault that is not among
them, and what may be wrong with base_url or the credentials where it gives no list.
That is advice and changes no exit code; an archive that is away is not named. With
--offline it is not asked.
It sends no document and changes nothing, but makes an empty folder in each drop and
removes it at once, to see whether chmod has an effect there.

A secret that is a credential of systemd (credential:NAME) is for the running vaultd
alone: check names it as not checked, and "vaultd doctor" asks the running vaultd.

With --show it prints every value that counts, and where each comes from: a line of the
file, an environment variable, or the default. Who signs in is hidden, so that it can be
sent to somebody who helps; a secret stands in no configuration.

With --schema it prints the JSON schema of the configuration, or with "--schema sidecar"
that of the metadata.json in each folder; editors complete and check with them.`,
		Example: `  vaultd check
  vaultd check --config ./config.yaml
  vaultd check --show | grep upload
  vaultd check --schema > /usr/share/vaultd/config.schema.json
  vaultd check --schema sidecar > sidecar.schema.json`,
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case schema && show:
				return usageError{errors.New("--schema and --show are two questions; ask one")}
			case schema:
				return a.printSchema(args)
			case len(args) > 0:
				return usageError{fmt.Errorf("unexpected argument %q", args[0])}
			}
			return a.runCheck(c.Context(), show, !offline)
		},
	}
	c.Flags().BoolVar(&schema, "schema", false, "print the JSON schema of the configuration, or of a sidecar, for editors")
	c.Flags().BoolVar(&show, "show", false, "print every value and where it comes from")
	c.Flags().BoolVar(&offline, "offline", false, "do not ask the archive which vaults it lists")
	return c
}

func (a *app) printSchema(args []string) error {
	schema := config.Schema
	switch {
	case len(args) == 1 && args[0] == "sidecar":
		schema = sidecarSchema
	case len(args) > 1 || len(args) == 1 && args[0] != "config":
		return usageError{fmt.Errorf("no schema of %q: config and sidecar have one", args[0])}
	}
	_, err := a.stdout.Write(schema)
	return err
}

// checked is the object of "check --json".
type checked struct {
	Good        bool           `json:"good"`
	Environment string         `json:"environment,omitempty"`
	Drops       int            `json:"drops"`
	LookAt      []string       `json:"lookAt"`         // what a person should look at, drop by drop
	Advice      []string       `json:"advice"`         // such as vaults that the archive does not list
	User        string         `json:"user,omitempty"` // who checked it
	NotChecked  []string       `json:"notChecked"`     // files that systemd gives to the running vaultd alone
	Faults      []checkedFault `json:"faults"`
}

type checkedFault struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // 0: none
	Column  int    `json:"column"`
	Key     string `json:"key"`
	Problem string `json:"problem"`
	Hint    string `json:"hint"`
}

// runCheck prints what is wrong with the configuration, as the owner of
// state_dir sees it. With ask it also asks the archive for its list of vaults.
func (a *app) runCheck(ctx context.Context, show, ask bool) error {
	cfg, _ := a.configForAsking() // of a file with faults, only state_dir is known
	return a.asOwner(cfg.StateDir, func() error { return a.checkAsOwner(ctx, show, ask) })
}

func (a *app) checkAsOwner(ctx context.Context, show, ask bool) error {
	cfg, err := config.Check(a.configPath, a.env)
	ofTheUnit, err := config.SplitUnitFaults(err)
	wrong, isFaults := errors.AsType[*config.Error](err)
	switch {
	case a.json && isFaults:
		if err := writeJSON(a.stdout, checkedFaults(wrong)); err != nil {
			return err
		}
		return failSilently(exitConfig)
	case err != nil:
		return err
	case show:
		return a.showConfig(cfg)
	}
	advice := []string{}
	if ask {
		advice = append(advice, a.vaultAdvice(ctx, cfg)...)
	}
	notChecked, user := []string{}, present.UserName(uint32(os.Geteuid()))
	for _, f := range ofTheUnit {
		notChecked = append(notChecked, f.Key+": "+onlyTheUnit)
	}
	if a.json {
		return writeJSON(a.stdout, checked{Good: true, Environment: cfg.Service.Environment, Drops: len(cfg.Drops), LookAt: listConcerns(cfg), Advice: advice, NotChecked: notChecked, User: user, Faults: []checkedFault{}})
	}
	fmt.Fprintf(a.stdout, "configuration is good: %s, %s environment, service %s\n",
		present.FormatCount(len(cfg.Drops), "drop", "drops"), cfg.Service.Environment, cfg.Service.BaseURL)
	if cfg.Service.Environment != "production" {
		fmt.Fprintln(a.stdout, "TEST, NO EVIDENCE: what a test environment archives proves nothing")
	}
	t := present.NewTable(a.stdout, "DROP", "PATH", "VAULT", "AFTER ARCHIVING")
	for _, d := range cfg.Drops {
		t.AppendRow(present.TableRow(sanitize.Text(d.Name), sanitize.Text(d.Path), sanitize.Text(d.Vault), describeAfterArchive(d.AfterArchive)))
	}
	t.Render()
	switch {
	case os.Getuid() != os.Geteuid():
		fmt.Fprintf(a.stdout, "CHECKED AS   %s, the owner of state_dir\n", user)
	case a.isRoot():
		fmt.Fprintln(a.stdout, "CHECKED AS   root, which may read and write everything: a vaultd of another user may see less")
	}
	for _, text := range notChecked {
		fmt.Fprintf(a.stdout, "NOT CHECKED  %s\n", sanitize.Text(text))
	}
	for _, text := range listConcerns(cfg) {
		fmt.Fprintf(a.stdout, "LOOK AT  %s\n", sanitize.Text(text))
	}
	for _, text := range advice {
		fmt.Fprintf(a.stdout, "ADVICE   %s\n", sanitize.Text(text))
	}
	return nil
}

// onlyTheUnit says why a file is not checked, and which command checks it.
const onlyTheUnit = "a credential, which systemd gives to the running vaultd alone: LoadCredential= in its unit. vaultd doctor asks the running vaultd"

// isSecretOfTheUnit reports whether a command outside the unit lacks a secret
// because systemd gives it to the daemon alone.
func (a *app) isSecretOfTheUnit(auth config.Auth) bool {
	_, err := config.ReadSecret(auth.SecretFile, a.env)
	return config.IsOfTheUnit(err)
}

// accountAuth returns the credentials of an account of the archive.
func accountAuth(cfg config.Config, account string) config.Auth {
	if account == "" {
		return cfg.Service.Auth
	}
	return cfg.Service.Accounts[account]
}

// showConfig prints the settings, one in a line, each with its origin.
func (a *app) showConfig(c config.Config) error {
	all := c.Settings
	if a.json {
		return writeJSON(a.stdout, struct {
			Settings []config.Setting `json:"settings"`
		}{all})
	}
	t := present.NewTable(a.stdout, "KEY", "VALUE", "FROM")
	for _, s := range all {
		t.AppendRow(present.TableRow(s.Key, s.FormatYAML(), sanitize.Text(s.DescribeOrigin())))
	}
	t.Render()
	return nil
}

// listConcerns lists what a person should look at although the configuration is good: first the ledger, then each drop.
func listConcerns(cfg config.Config) []string {
	all := []string{}
	if trouble := ledgerTrouble(cfg); trouble != "" {
		all = append(all, "state_dir: "+trouble)
	}
	if trouble := spoolTrouble(cfg); trouble != "" {
		all = append(all, "spool.max: "+trouble)
	}
	if at := cfg.SharesExtractUser(); at != "" {
		all = append(all, "extracts.auth.username: "+at+" has this user too; the extracts have an API user of their own")
	}
	if cfg.Service.Environment == "production" {
		for _, at := range cfg.Addresses() {
			if at.IsHere() {
				all = append(all, at.Key+": "+at.URL+" is on this machine, though the environment is production. That is right only for a TLS proxy here that leads to the service")
			}
		}
	}
	for _, d := range cfg.Drops {
		noted := []string{describeDropTrouble(d.Path), warnOfShortSettle(d), ""}
		if noted[0] == "" {
			noted[0] = describeModesTrouble(d)
		}
		if d.Retention == 0 {
			noted[2] = noRetention
		}
		for _, text := range noted {
			if text != "" {
				all = append(all, "drop "+d.Name+": "+text)
			}
		}
	}
	return all
}

// spoolTrouble says that the spool may be too small for a largest package of
// each vault and of each other service; "" when it is large enough.
func spoolTrouble(cfg config.Config) string {
	largest := map[string]int64{} // by service queue
	for _, d := range cfg.Drops {
		size := cfg.Package.MaxSize
		if d.Route == string(ledger.PDF) {
			size = cfg.PDF.MaxSize
		}
		largest[ledger.ServiceQueue(ledger.Route(d.Route), d.Vault)] = size
	}
	need := int64(len(largest)) * slices.Max(slices.Collect(maps.Values(largest)))
	if cfg.Spool.Max >= need {
		return ""
	}
	return fmt.Sprintf("%s are shared by %d vaults or services. A share that is smaller than a largest package makes one wait until earlier ones are archived; %s would be enough for one of each",
		present.FormatSize(cfg.Spool.Max), len(largest), present.FormatSize(need))
}

func checkedFaults(wrong *config.Error) checked {
	c := checked{LookAt: []string{}, Advice: []string{}, NotChecked: []string{}}
	for _, f := range wrong.Faults {
		c.Faults = append(c.Faults, checkedFault{f.File, f.Line, f.Col, f.Key, f.Problem, f.Hint})
	}
	return c
}

func describeAfterArchive(a config.AfterArchive) string {
	switch a.Action {
	case "move":
		return "moved to " + sanitize.Text(a.To) + " after " + present.FormatAge(a.Grace)
	case "delete":
		return "deleted after " + present.FormatAge(a.Grace)
	}
	return "kept"
}

// describeDropTrouble tells why the user who asks could not work in a drop folder now; "" when nothing prevents it. This is no fault
// of the configuration: a file system may be mounted later.
func describeDropTrouble(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path + " is not there: mount it or make it (docs/samba.md)"
	case err != nil:
		return "cannot be looked at: " + err.Error()
	case !info.IsDir():
		return path + " is not a folder"
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if err := unix.Access(path, unix.W_OK); errors.Is(err, syscall.EROFS) {
		readOnly := &drop.ReadOnlyError{Path: path}
		return readOnly.Error() + ". " + readOnly.Advice()
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Sprintf("%s cannot work in %s, which belongs to %s with rights %04o (%v); see docs/samba.md", present.UserName(uint32(os.Geteuid())),
			path, present.UserName(owner), info.Mode().Perm(), err)
	}
	if uid := os.Geteuid(); info.Mode()&fs.ModeSticky != 0 && uid != 0 && uint32(uid) != owner {
		return fmt.Sprintf("%s has the sticky bit and belongs to %s, so that nothing can be taken out of it; give it to %s", path,
			present.UserName(owner), present.UserName(uint32(uid)))
	}
	return ""
}

// describeModesTrouble says why the modes that the mount of a drop folder gives
// keep vaultd from working; "" when it can work, or when this user may not try
// it.
func describeModesTrouble(d config.Drop) string {
	_, err := tryModes(d)
	if fault, ok := errors.AsType[*drop.ModesError](err); ok {
		return fault.Error() + ". What to do: " + fault.Advice()
	}
	return ""
}

func tryModes(d config.Drop) (drop.MountModes, error) {
	return drop.TryModes(drop.Config{Path: d.Path, Name: d.Name, Group: d.Group, AcceptsMountModes: d.Modes == "mount"})
}

// saneSettle is how long a writer on a share may pause: the network stalls, an export is busy, a person is between two files.
const saneSettle = 10 * time.Second

// noRetention warns that documents of a drop count as missing for ever after the archive has removed them.
const noRetention = "retention is not known: what the archive removes at its end will be called MISSING by reconcile. Write retention: 10y, or what your contract says"

// warnOfShortSettle warns that a drop may take a folder while its writer only pauses; "" when it waits long enough or has a better sign.
func warnOfShortSettle(d config.Drop) string {
	if d.Complete != "quiet" || d.Settle >= saneSettle {
		return ""
	}
	return fmt.Sprintf("settle is %v, and complete is quiet: a writer that pauses longer may be taken before it is done, and cut off. Write settle: 30s, or complete: list or marker", d.Settle)
}

// sidecarSchema is for the editors of people who write sidecars. The packager does not use it: the packager
// checks more and explains it in a clerk's words. The schema's descriptions name what the schema cannot check.
//
//go:embed sidecar.schema.json
var sidecarSchema []byte

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"vaultd/internal/emulator"
)

// emulateOptions are the flags of emulate.
type emulateOptions struct {
	listen     string
	ahead      time.Duration // of its clock
	secretFile string
	faults     []string
	vaults     []string
	accounts   map[string]string // of vaults, by id
	extracts   string            // folder with those that it offers; may be empty
	outcomes   []string          // of documents of the network
	received   string            // folder with documents that come in over it; may be empty
	cfg        emulator.Config
}

func (a *app) emulateCommand() *cobra.Command {
	var o emulateOptions
	c := &cobra.Command{
		Use:   "emulate",
		Short: "run the stand-in of the archive service alone",
		Long: `Runs a strict stand-in of the archive service on this machine: registration, real
pre-signed upload addresses that expire, status, index, download and tokens; of the
PDF upload; of the extracts, which it takes from the folder --extracts; and of the
business network, over which the documents in the folder --received come in. What it
is sent, it keeps in --dir, also over a restart.

Each other reading of the interface and each fault is a switch. A fault is
op:kind:rate, as in upload:abort:0.1 (one PUT in ten dies before it is carried out),
upload:abort-done:0.1 (after), pdf-upload:503-read:0.1 (after its body, which is thrown
away), register:429:0.2, pdf-upload:503:0.1 (before its body), status:garble:0.05 or
*:late:0.01. The operations are register, upload, status, status-list, index,
download, vaults, token, pdf-register, pdf-upload, extract-list, extract-files,
extract-definition, extract-download, extract-fetch, extract-acknowledge,
network-file, network-fetch-file, network-validation-file, network-send,
network-fetch, network-notices, network-notify, network-acknowledge,
network-directory, and unknown for other paths. For those of the network the kind
may be a code of the network, as in network-send:Error.001.0010:0.1.

What becomes of a document of the network is chosen by words in its note: emulate:
and one of delivered, undelivered, invalid, late-reject, accepted-by-recipient,
rejected-by-recipient, delayed, unknown-pair, services, email, mail and silent.

What a correct client would never do stands in journal.jsonl in --dir, as a line of
the kind violation.`,
		Example: `  vaultd emulate --dir ./service --vault ACME
  vaultd emulate --dir ./service --vault ACME --fault 'upload:503:0.1' --window 30s
  vaultd emulate --dir ./service --vault ACME --client-id vaultd --token-life 30s
  vaultd emulate --dir ./service --vault ACME --extracts testdata/extracts
  vaultd emulate --dir ./service --vault ACME --received testdata/received`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.runEmulator(c.Context(), o) },
	}
	f := c.Flags()
	f.StringVar(&o.listen, "listen", "127.0.0.1:8971", "loopback `address` to listen on")
	f.StringVar(&o.cfg.Dir, "dir", "vaultd-emulator", "`folder` for what it is sent")
	f.StringArrayVar(&o.vaults, "vault", []string{"DEMO"}, "vault `id`; repeat for several")
	f.StringToStringVar(&o.accounts, "account", nil, "`vault=user`: this user alone, with the same secret, sees and uses the vault; repeat for several")
	f.StringVar(&o.cfg.Username, "username", "demo", "user of HTTP Basic; empty: not offered")
	f.StringVar(&o.cfg.ClientID, "client-id", "", "OAuth 2.0 client `id`; empty: not offered")
	f.StringVar(&o.secretFile, "secret-file", "", "`file` with the secret of both (default: the secret is \"demo\")")
	f.StringArrayVar(&o.cfg.Scopes, "scope", nil, "`scope` that tokens may have; repeat for several")
	f.StringVar(&o.cfg.RequireScope, "require-scope", "", "`scope` that calls to the vault need")
	f.DurationVar(&o.cfg.TokenLife, "token-life", time.Hour, "how long a token works")
	f.DurationVar(&o.cfg.Window, "window", 15*time.Minute, "how long an upload address works")
	f.DurationVar(&o.cfg.ArchiveMin, "archive-min", time.Second, "shortest time from upload to archived")
	f.DurationVar(&o.cfg.ArchiveMax, "archive-max", 5*time.Second, "longest time from upload to archived")
	f.DurationVar(&o.ahead, "clock-ahead", 0, "how far its clock is ahead of this machine's; negative: behind")
	f.StringArrayVar(&o.faults, "fault", nil, "`op:kind:rate`; repeat for several")
	f.Uint64Var(&o.cfg.Seed, "seed", 1, "of everything that happens by chance")
	addReadingFlags(f, &o.cfg.Readings)
	addPDFFlags(f, &o.cfg.PDF, &o.cfg.Readings.PDF)
	addExtractFlags(f, &o.extracts, &o.cfg.Extracts, &o.cfg.Readings.Extracts)
	addNetworkFlags(f, &o)
	return c
}

// addReadingFlags adds the flags of what the archive's specification leaves open.
func addReadingFlags(f *pflag.FlagSet, r *emulator.Readings) {
	f.StringVar(&r.URLForm, "url-form", "", "archiveFileURL as object, string, headers or fields")
	f.StringVar(&r.Repeat, "repeat", "", "a clientUUID seen before: new, refuse or same")
	f.StringVar(&r.LatePackage, "late-package", "", "a package that lands after the window: archive or ignore")
	f.IntVar(&r.BadCredentials, "bad-credentials", 403, "answer to wrong credentials and dead tokens: 403 or 401")
	f.StringVar(&r.TokenType, "token-type", "", "`word` for the type of each token, in place of Bearer; none: it is left out")
	f.BoolVar(&r.TokenErrorsAs200, "token-errors-as-200", false, "errors of the token endpoint come with 200")
	f.IntVar(&r.UnknownBumID, "unknown-bumid", 404, "answer to a question about an unknown bumId: 404, 400, 422 or 502")
	f.StringVar(&r.BumIDCase, "bumid-case", "", "letters of bumIds: small, capital or mixed (capital where one is told again)")
	f.DurationVar(&r.ListAge, "list-age", 0, "the status list tells how things stood so long ago")
	f.StringVar(&r.BasicEncoding, "basic-encoding", "", "of user and secret: raw or rfc6749")
	f.StringVar(&r.ErrorBody, "error-body", "", "form of error answers, like message, detail, oauth, xml, html, empty")
	f.BoolVar(&r.NumbersAsStrings, "numbers-as-strings", false, "numbers come as strings")
	f.BoolVar(&r.TwinFields, "twins", false, "each field is followed by one of its name in capitals that says something else")
	f.StringVar(&r.InProgressWord, "in-progress-word", "", "`word` instead of ArchivingInProgress; %d in it becomes another number each second")
	f.StringVar(&r.ETag, "etag", "", "of a stored package: md5, kms or none")
	f.StringVar(&r.ContentMD5, "content-md5", "", "of an upload: check or ignore; or unsigned, mismatch, unknown: refused with 403 or 501 where the address does not sign it")
	f.StringVar(&r.Expect, "expect", "", "an upload that waits for 100 Continue: continue, or refuse with 417")
	f.StringVar(&r.PackageType, "package-type", "", "the Content-Type that an upload must have: any, application/octet-stream or application/zip")
	f.StringVar(&r.ShortBody, "short-body", "", "an upload whose body ends early: refuse, or keep where Content-MD5 is ignored")
	f.StringVar(&r.Download, "download", "", "answer as bytes, redirect or json")
	f.StringVar(&r.StatusList, "status-list", "", "the status list covers the last documents that were registered, or uploaded")
	f.StringVar(&r.VaultList, "vault-list", "", "answer as objects, ids or wrapped")
	f.StringVar(&r.IndexFound, "index-found", "", "what the index gives as found: all, none, page, read, left, zero, negative or more")
	f.StringVar(&r.IndexFields, "index-fields", "", "a record of the index has the fields that were sent, or is filled: with some that were not, too")
	f.DurationVar(&r.Retention, "retention", 0, "how long after its success a document leaves the archive; 0: never")
	f.IntVar(&r.IndexPage, "index-page", 0, "an index page has at most so many documents; 0: as asked")
}

func (a *app) runEmulator(ctx context.Context, o emulateOptions) error {
	o.cfg.Clock = func() time.Time { return time.Now().Add(o.ahead) }
	secret := "demo"
	if o.secretFile != "" {
		s, err := os.ReadFile(o.secretFile)
		if err != nil {
			return fail(exitUsage, fmt.Errorf("read secret: %w", err), "")
		}
		secret = strings.TrimRight(string(s), "\r\n")
	}
	if o.cfg.Username != "" {
		o.cfg.Secret = secret
	}
	if o.cfg.ClientID != "" {
		o.cfg.ClientSecret = secret
	}
	for _, account := range []*emulator.Account{&o.cfg.PDF.Account, &o.cfg.Extracts.Account, &o.cfg.Network.Account} {
		if account.Name != "" {
			account.Secret = secret
		}
	}
	for _, v := range o.vaults {
		vault := emulator.Vault{ID: v, Name: "Vault " + v}
		if user := o.accounts[v]; user != "" {
			vault.Account = emulator.Account{Name: user, Secret: secret}
		}
		o.cfg.Vaults = append(o.cfg.Vaults, vault)
	}
	for _, text := range o.faults {
		rule, err := emulator.ParseRule(text)
		if err != nil {
			return usageError{err}
		}
		o.cfg.Faults.Rules = append(o.cfg.Faults.Rules, rule)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	for _, text := range o.outcomes {
		rate, err := parseOutcome(text)
		if err != nil {
			return usageError{err}
		}
		o.cfg.Network.Outcomes = append(o.cfg.Network.Outcomes, rate)
	}
	s, err := startEmulator(ctx, o.listen, o.cfg)
	if err != nil {
		return err
	}
	if err := o.publishFolders(s.Server); err != nil {
		stop()
		return errors.Join(err, s.wait())
	}
	fmt.Fprintf(a.stdout, "service  %s\nvaults   %s\nkept in  %s\nstop with Ctrl-C\n", s.url, strings.Join(o.vaults, ", "), o.cfg.Dir)
	return s.wait()
}

// publishFolders makes the service offer what is in the folders of the command line.
func (o emulateOptions) publishFolders(emu *emulator.Server) error {
	if o.extracts != "" {
		if err := publishExtracts(emu, os.DirFS(o.extracts), o.cfg.Clock()); err != nil {
			return fail(exitUsage, fmt.Errorf("offer the extracts of %s: %w", o.extracts, err), "docs/extracts.md says what is in such a folder")
		}
	}
	if o.received != "" {
		if err := publishReceived(emu, os.DirFS(o.received), noMoreFiles); err != nil {
			return fail(exitUsage, fmt.Errorf("let the documents of %s come in: %w", o.received, err), "docs/network.md says what is in such a folder")
		}
	}
	return nil
}

// running is an emulator that serves on a loopback address.
type running struct {
	*emulator.Server
	url  string
	wait func() error // until the context ends and the server is down
}

// startEmulator serves until ctx ends.
func startEmulator(ctx context.Context, listen string, cfg emulator.Config) (*running, error) {
	host, _, err := net.SplitHostPort(listen)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, usageError{fmt.Errorf("listen on %q: give a loopback address like 127.0.0.1:8971; the stand-in is for this machine alone", listen)}
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fail(exitTemporary, err, "another program has this port; choose another with --listen")
	}
	emu, err := emulator.New(cfg)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	srv := &http.Server{Handler: emu, ReadHeaderTimeout: 10 * time.Second}
	var g errgroup.Group
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return fmt.Errorf("serve: %w", err)
		}
		return nil
	})
	g.Go(func() error {
		<-ctx.Done()
		return srv.Close()
	})
	return &running{Server: emu, url: "http://" + l.Addr().String(), wait: func() error { return errors.Join(g.Wait(), emu.Close()) }}, nil
}

package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

// wanted is what is to be downloaded, and what the ledger knows of it.
type wanted struct {
	vault  archive.VaultID
	remote archive.RemoteID
	entry  ledger.Entry // of which this is a registration; the zero one: the ledger does not know it
}

// wantedOf is the package under which an archived entry is booked.
func wantedOf(e ledger.Entry) wanted { return wanted{e.Vault, e.ArchivedRemote, e} }

func (w wanted) known() bool { return !w.entry.Key.IsZero() }

// booked reports whether the ledger counts the document as archived under this very number.
func (w wanted) booked() bool {
	return w.entry.State == ledger.Archived && w.entry.ArchivedRemote == w.remote
}

// name is what people call it.
func (w wanted) name() string {
	if w.known() {
		return w.entry.Folder
	}
	return "bumId " + string(w.remote)
}

// against says what the download is compared with; empty: with what was sent, as nobody would doubt.
func (w wanted) against() string {
	switch {
	case !w.known():
		return fmt.Sprintf("this ledger does not know bumId %s: there is nothing to compare it with", w.remote)
	case w.entry.Package.IsZero():
		return fmt.Sprintf("bumId %s is one of %q (%s), %s; the ledger knows nothing of its ZIP: there is nothing to compare it with", w.remote, w.entry.Folder, w.entry.Drop, w.entry.State)
	case w.booked():
		return fmt.Sprintf("bumId %s is %q (%s), %s; it is compared with what was sent", w.remote, w.entry.Folder, w.entry.Drop, present.StateText(w.entry))
	}
	return fmt.Sprintf("bumId %s is a registration of %q (%s), which is %s here and not archived under this number; it is compared with the ZIP of that folder", w.remote, w.entry.Folder, w.entry.Drop, present.StateText(w.entry))
}

// fetchArgs wants X, or a vault and a bumId.
func fetchArgs(f *fetchFlags) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if f.bumID == "" && f.vault == "" {
			return takes("X (a key, clientUUID, bumId or folder name)")(c, args)
		}
		switch _, err := archive.ParseRemoteID(f.bumID); {
		case f.bumID == "" || f.vault == "":
			return usageError{errors.New("--vault and --bumid belong together; give both, or name what the ledger knows")}
		case len(args) > 0:
			return usageError{fmt.Errorf("either X or --vault and --bumid; %q is too much", sanitize.Text(args[0]))}
		case err != nil:
			return usageError{fmt.Errorf("--bumid: %w", err)}
		case len(f.vault) > maxVaultID || !vaultIDs.MatchString(f.vault):
			return usageError{fmt.Errorf("--vault %q is not the id of a vault", sanitize.FirstLine(f.vault, 60))}
		case f.force:
			return usageError{errors.New("--force does not go with --bumid: what the ledger does not know never overwrites a file")}
		}
		return nil
	}
}

const maxVaultID = 200 // bytes

// vaultIDs are what a configuration takes for the id of a vault.
var vaultIDs = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*$`)

// byNumber finds what the ledger knows of a registration that a person names.
func (v view) byNumber(f fetchFlags) (wanted, error) {
	remote, err := archive.ParseRemoteID(f.bumID)
	w := wanted{vault: archive.VaultID(f.vault), remote: remote}
	if err != nil {
		return w, err
	}
	key, ok, err := v.ledger.FindByRemote(remote)
	if err != nil || !ok {
		return w, err
	}
	if w.entry, ok, err = v.ledger.Entry(key); err != nil || !ok {
		return w, err
	}
	if w.entry.Vault != w.vault { // it may be charged, and the answer could only be "not there"
		return w, fail(exitFailed, fmt.Errorf("nothing was downloaded: bumId %s is one of %q, which goes to vault %s, not %s", remote, w.entry.Folder, w.entry.Vault, w.vault), "name that vault with --vault")
	}
	return w, nil
}

// mayHold is the newest number of an entry under which the archive may have content; empty: there is none.
func mayHold(e ledger.Entry) archive.RemoteID {
	if e.ArchivedRemote != "" {
		return e.ArchivedRemote
	}
	for _, r := range slices.Backward(e.Registrations) {
		if r.Fate == ledger.MaybeStored || r.Fate == ledger.Stored || r.Fate == ledger.Succeeded {
			return r.Ticket.Remote
		}
	}
	return ""
}

// fetchNumber is the command that downloads what the archive has under a number.
func fetchNumber(v archive.VaultID, r archive.RemoteID) string {
	return "vaultd fetch --vault " + sanitize.ShellWord(string(v)) + " --bumid " + sanitize.ShellWord(string(r))
}

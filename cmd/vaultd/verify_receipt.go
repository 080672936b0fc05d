package main

import (
	"context"
	"errors"
	"fmt"
	"html"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"vaultd/internal/proof"
	"vaultd/internal/sanitize"
)

// signatureVerdict says whether the signature of a receipt holds; it is the
// object of "verify --receipt --json".
type signatureVerdict struct {
	OK        bool   `json:"ok"`
	PublicKey string `json:"publicKey"` // that the receipt names
	Of        string `json:"keyOf"`     // whose key that is
}

// verifyReceipt says whether the signature of a receipt, or of a delivery note,
// holds: with a key in the file, or in the text, that from names; where it is
// empty, with those of the ledger. The daemon gets the key alone; the files
// stay here.
func (a *app) verifyReceipt(c *cobra.Command, args []string, file, from string) error {
	key := ""
	if a.inside == nil {
		text, err := readEvidenceFile(file)
		if err != nil {
			return err
		}
		named := proof.FindPublicKeys(text)
		if key, err = proof.CheckSignature(text, named); err != nil {
			return a.rejectReceipt(file, err)
		}
		if from != "" {
			return a.verifyWithKeysOf(file, key, from)
		}
		// A receipt names its key; from here on only the key matters.
		if err := c.Flags().Set("receipt", key); err != nil {
			return err
		}
	} else if key = file; !slices.Equal(proof.FindPublicKeys([]byte(key)), []string{key}) {
		return usageError{errors.New("the daemon reads no files for others")}
	}
	return a.withLedger(c, args, func(_ context.Context, v view) error {
		switch i := slices.Index(v.ledger.Info().ReceiptKeys, key); {
		case i == 0:
			return a.acceptReceipt(signatureVerdict{true, key, "this ledger"})
		case i > 0:
			return a.acceptReceipt(signatureVerdict{true, key, "this ledger, before it was rebuilt"})
		}
		return a.rejectReceipt("the receipt", proof.ErrUnknownKey)
	})
}

// verifyWithKeysOf checks the key of a receipt whose signature holds.
func (a *app) verifyWithKeysOf(file, key, from string) error {
	keys := proof.FindPublicKeys([]byte(from))
	if len(keys) == 0 {
		text, err := readEvidenceFile(from)
		if err != nil {
			return err
		}
		keys = proof.FindPublicKeys([]byte(html.UnescapeString(string(text))))
	}
	switch {
	case len(keys) == 0:
		return fail(exitData, fmt.Errorf("%s has no key of receipts", sanitize.Text(from)), "name a drop.json, a report, or the key itself: it begins with MCowBQYDK2VwAyEA")
	case !slices.Contains(keys, key):
		return a.rejectReceipt(file, errors.New("is signed with another key than "+strings.Join(keys, ", ")))
	}
	return a.acceptReceipt(signatureVerdict{true, key, sanitize.Text(from)})
}

func (a *app) acceptReceipt(v signatureVerdict) error {
	if a.json {
		return writeJSON(a.stdout, v)
	}
	fmt.Fprintf(a.stdout, "SIGNATURE holds: each line is as it was signed\nKEY       %s\n          of %s\nThat the files beside it are those that it lists, their digests say.\n", v.PublicKey, v.Of)
	return nil
}

func (a *app) rejectReceipt(file string, why error) error {
	return fail(exitDifferences, fmt.Errorf("%s %w", sanitize.Text(file), why), "it proves nothing by itself: ask the archive about its bumId; vaultd receipt X prints what the ledger has")
}

// readEvidenceFile reads a receipt, or a file that names a key, as the caller.
func readEvidenceFile(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fail(exitData, fmt.Errorf("read %s: %w", sanitize.Text(name), err), "name a _RECEIPT.json, a _DELIVERED.json, a drop.json or a report")
	}
	defer f.Close() // read-only
	text, err := io.ReadAll(io.LimitReader(f, maxHeadFile+1))
	if err == nil && len(text) > maxHeadFile {
		err = fail(exitData, fmt.Errorf("%s has more than %d MB", sanitize.Text(name), maxHeadFile>>20), "")
	}
	return text, err
}

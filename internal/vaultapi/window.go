package vaultapi

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// Window is the service's word about the last registrations of a vault.
type Window struct {
	Receipts []archive.Receipt
	Whole    bool      // every record was read, none contradicts another, and the answer tells of no more: only then does what is missing say something
	Date     time.Time // the service's clock as the answer gave it; zero: not given
}

// StatusWindow asks about the vault's last 500 registrations. Records that cannot be read are left out, and so is every
// bumId of which the answer says two things: whoever wants to know asks for it alone.
func (c *Client) StatusWindow(ctx context.Context, v archive.VaultID) (Window, error) {
	ans, err := c.get(ctx, v, "ask for the status list", answerOf(listed), "documents", "status")
	if err != nil {
		return Window{}, err
	}
	defer ans.Release()
	raw, err := records(ans.Body, "documents")
	if err != nil {
		return Window{}, ans.Unreadable("ask for the status list", err)
	}
	w := Window{Receipts: unanimous(raw), Date: ans.Date()}
	if len(raw) > 0 && len(w.Receipts) == 0 {
		return Window{}, ans.Unreadable("ask for the status list", errShape)
	}
	for i := range w.Receipts {
		w.Receipts[i].Date = w.Date
	}
	w.Whole = len(w.Receipts) == len(raw) && !tellsOfMore(ans.Body, len(raw))
	return w, nil
}

// tellsOfMore reports whether an answer of so many records says that there are others: by their number, or by the cursor
// of a next page. The list is specified without pages, so no other page is asked for.
func tellsOfMore(body []byte, records int) bool {
	f, err := apicall.ReadFields(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")), "cursor", "found")
	if err != nil {
		return errors.Is(err, apicall.ErrTwice) // anything else is a bare list
	}
	found, err := strconv.Atoi(text(f["found"]))
	return text(f["cursor"]) != "" || err == nil && found > records
}

package vaultapi

import (
	"context"
	"errors"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// ReadStatusList asks about the last 500 registrations of a vault. It leaves out records that cannot be read, and each bumId of
// which two records differ: such a bumId must be asked about alone.
func (c *Client) ReadStatusList(ctx context.Context, v archive.VaultID) (archive.StatusList, error) {
	ans, err := c.getJSON(ctx, v, "ask for the status list", answerLimit(listed), "documents", "status")
	if err != nil {
		return archive.StatusList{}, err
	}
	defer ans.Release()
	raw, err := apicall.ReadRecords(ans.Body, "documents")
	if err != nil {
		return archive.StatusList{}, ans.Unreadable("ask for the status list", err)
	}
	w := archive.StatusList{Receipts: unanimousReceipts(raw), Date: ans.Date()}
	// An answer of unreadable records must not pass for an empty list.
	if len(raw) > 0 && len(w.Receipts) == 0 {
		return archive.StatusList{}, ans.Unreadable("ask for the status list", apicall.ErrUnknownForm)
	}
	for i := range w.Receipts {
		w.Receipts[i].Date = w.Date
	}
	w.Whole = len(w.Receipts) == len(raw) && !reportsMore(ans.Body, len(raw))
	return w, nil
}

// reportsMore reports whether an answer of so many records says that there are others: by their number, or by the cursor
// of a next page. The list is specified without pages, so no other page is asked for.
func reportsMore(body []byte, records int) bool {
	f, err := apicall.ReadFields(body, "cursor", "found")
	if err != nil {
		return errors.Is(err, apicall.ErrTwice) // anything else is a bare list
	}
	return f.Text("cursor") != "" || f.Count("found") > records
}

package vaultapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

const maxRecord = 4096

// Status asks about one registration. An *apicall.Error with MayBeAbsent says that the service may not know it.
func (c *Client) Status(ctx context.Context, v archive.VaultID, r archive.RemoteID) (archive.Receipt, error) {
	ans, err := c.getJSON(ctx, v, "ask for the status", recordAnswer, "documents", string(r), "status")
	if err != nil {
		return archive.Receipt{}, err
	}
	defer ans.Release()
	list, err := apicall.ReadRecords(ans.Body)
	if err == nil && len(list) != 1 {
		err = apicall.ErrUnknownForm
	}
	if err != nil {
		return archive.Receipt{}, ans.Unreadable("ask for the status", err)
	}
	rc, err := readReceipt(list[0])
	switch {
	case err != nil:
		return archive.Receipt{}, ans.Unreadable("ask for the status", err)
	case rc.Remote == "":
		rc.Remote = r // the answer is to a question about this number
	case rc.Remote != r:
		return archive.Receipt{}, ans.Unreadable("ask for the status", errors.New("the answer speaks of another bumId"))
	}
	rc.Date = ans.Date()
	return rc, nil
}

// StatusList returns the receipts of ReadStatusList.
func (c *Client) StatusList(ctx context.Context, v archive.VaultID) ([]archive.Receipt, error) {
	w, err := c.ReadStatusList(ctx, v)
	return w.Receipts, err
}

// unanimousReceipts reads the records. It leaves out those that cannot be read, and each bumId of which two records differ.
func unanimousReceipts(list []json.RawMessage) []archive.Receipt {
	first := map[archive.RemoteID]archive.Receipt{}
	split := map[archive.RemoteID]bool{}
	var order []archive.RemoteID
	for _, raw := range list {
		rc, err := readReceipt(raw)
		if err != nil || rc.Remote == "" {
			continue
		}
		if had, seen := first[rc.Remote]; seen {
			split[rc.Remote] = split[rc.Remote] || had.Raw != rc.Raw || had.ID != rc.ID
			continue
		}
		first[rc.Remote] = rc
		order = append(order, rc.Remote)
	}
	var out []archive.Receipt
	for _, r := range order {
		if !split[r] {
			out = append(out, first[r])
		}
	}
	return out
}

var statusWords = map[string]archive.ServiceStatus{
	"WaitingForPackageUpload": archive.WaitingForPackage,
	"ArchivingInProgress":     archive.InProgress,
	"ArchivingSuccessful":     archive.Successful,
	"ArchivingFailed":         archive.Failed,
}

// parseStatus maps the service's word for a status; any other word is Unfamiliar.
func parseStatus(word string) archive.ServiceStatus { return statusWords[word] }

// readReceipt reads one record, which must have a status.
func readReceipt(raw json.RawMessage) (archive.Receipt, error) {
	f, err := apicall.ReadFields(raw, "bumId", "clientUUID", "lastUpdated", "status", "message")
	if err != nil {
		return archive.Receipt{}, err
	}
	status := f.Text("status")
	if status == "" {
		return archive.Receipt{}, apicall.ErrUnknownForm
	}
	rc := archive.Receipt{Status: parseStatus(status), Raw: sanitizeMessage(status),
		Updated: f.Time("lastUpdated"), Message: sanitizeMessage(f.Text("message"))}
	// The record is evidence: it is kept as it came, and its length is bounded because it goes into the ledger.
	rc.Record = bytes.Clone(raw[:min(len(raw), maxRecord)])
	if given := f.Text("bumId"); given != "" {
		remote, err := archive.ParseRemoteID(given)
		if err != nil {
			return archive.Receipt{}, err
		}
		rc.Remote = remote
	}
	if id, err := archive.ParseID(f.Text("clientUUID")); err == nil {
		rc.ID = id
	}
	return rc, nil
}

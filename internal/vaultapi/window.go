package vaultapi

import (
	"context"

	"vaultd/internal/archive"
)

// StatusWindow asks what StatusList asks. whole says that every record of the answer was read and that none contradicts
// another: only then does a document that is missing from the list say something.
func (c *Client) StatusWindow(ctx context.Context, v archive.VaultID) (list []archive.Receipt, whole bool, err error) {
	ans, err := c.get(ctx, "ask for the status list", "v1", "vaults", string(v), "documents", "status")
	if err != nil {
		return nil, false, fault(err, byQuestion)
	}
	raw, err := records(ans.Body, "documents")
	if err != nil {
		return nil, false, unreadable("ask for the status list", ans, err)
	}
	list = unanimous(raw)
	if len(raw) > 0 && len(list) == 0 {
		return nil, false, unreadable("ask for the status list", ans, errShape)
	}
	return list, len(list) == len(raw), nil
}

package proof

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// ParseReceipt reads what Encode wrote; fields that a later version added are ignored.
func ParseReceipt(b []byte) (r Receipt, err error) {
	dec := json.NewDecoder(bytes.NewReader(b))
	if err := dec.Decode(&r); err != nil || dec.More() {
		return r, fmt.Errorf("parse receipt: it is not one JSON object: %w", err)
	}
	if r.Format != receiptFormat {
		return r, fmt.Errorf("parse receipt: its format is %.40q, not %q", r.Format, receiptFormat)
	}
	return r, nil
}

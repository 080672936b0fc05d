package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"vaultd/internal/expected"
	"vaultd/internal/sanitize"
)

// readExpected reads the list of what was expected, with the rights of whoever asks, as the daemon takes it; nil: there is none.
func (f auditFlags) readExpected() ([]byte, error) {
	if f.expected == "" {
		return nil, nil
	}
	o := expected.Options{}
	var err error
	if o.Columns, err = expected.ParseColumns(f.columns); err != nil {
		return nil, usageError{err}
	}
	switch f.decimal {
	case "comma":
		o.Decimal = ','
	case "point":
		o.Decimal = '.'
	}
	file, err := os.Open(f.expected)
	if err != nil {
		return nil, fail(exitData, fmt.Errorf("open the list of what was expected: %w", err), "")
	}
	defer file.Close() // it is only read
	list, err := expected.Read(sanitize.Text(filepath.Base(f.expected)), file, o)
	if wrong, ok := errors.AsType[*expected.ColumnsError](err); ok {
		return nil, fail(exitData, err, wrong.Advice())
	}
	if wrong, ok := errors.AsType[*expected.DataError](err); ok {
		return nil, fail(exitData, err, wrong.Advice)
	}
	if err != nil {
		return nil, fail(exitIO, err, "")
	}
	var b bytes.Buffer
	err = list.Encode(&b)
	return b.Bytes(), err
}

package report

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"vaultd/internal/sanitize"
)

// JSON writes the audit as one object: the summary's fields, then "documents", one
// object a line, then "table" with what the end says. Times are in UTC, amounts are
// decimal text. Text is as it was given, with control characters escaped.
func (a *Audit) JSON(ctx context.Context, w io.Writer) (Closing, error) {
	out := bufio.NewWriterSize(w, buffered)
	head, err := marshalJSON(a.Summary)
	if err != nil {
		return Closing{}, err
	}
	out.Write(bytes.TrimSuffix(head, []byte("}"))) //lint:ignore errcheck bufio keeps the first error for Flush
	out.WriteString(",\n\"documents\":[")          //lint:ignore errcheck as above
	sep := "\n"
	closing, err := a.eachRow(ctx, func(r row) error {
		b, err := marshalJSON(r)
		if err != nil {
			return err
		}
		out.WriteString(sep) //lint:ignore errcheck as above
		sep = ",\n"
		_, err = out.Write(b)
		return err
	})
	if err != nil {
		return closing, err
	}
	end, err := marshalJSON(closing)
	if err != nil {
		return closing, err
	}
	fmt.Fprintf(out, "\n],\n\"table\":%s}\n", end)
	return closing, flush(out)
}

// marshalJSON leaves < > & as they are: nothing here is put into a page.
func marshalJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the report: %w", err)
	}
	return sanitize.JSON(bytes.TrimSpace(b.Bytes())), nil
}

const buffered = 32 << 10

func flush(out *bufio.Writer) error {
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return nil
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"vaultd/internal/config"
	"vaultd/internal/web"
)

func (a *app) hashPasswordCommand() *cobra.Command {
	var rights []string
	c := &cobra.Command{
		Use:   "hash-password [NAME]",
		Short: "a line for the file of users of the web port",
		Long: `Asks for a new password on the terminal, twice and without showing it, or reads one
line from standard input. It prints a line for http.access.users_file: the name, the hash
of the password by bcrypt, and the rights. Without NAME it prints the hash alone. The
password has at least 12 characters, five of them different, and at most 72 bytes, because
bcrypt looks at no more.

Rights are read (see documents), fetch (download documents, which may be charged; it needs
read too) and metrics (read /metrics and the reasons of the health pages).

It reads no configuration and writes no file. A changed file of users counts after a
reload: systemctl reload vaultd.`,
		Example: `  vaultd hash-password anna --rights read,fetch | sudo tee -a /etc/vaultd/users > /dev/null
  (umask 077; openssl rand -base64 24 | tee password) | vaultd hash-password prometheus --rights metrics`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError{fmt.Errorf("unexpected argument %q", args[1])}
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && c.Flags().Changed("rights") {
				return usageError{errors.New("--rights is used with NAME only")}
			}
			return a.runHashPassword(c.Context(), strings.Join(args, ""), len(args) == 1, rights)
		},
	}
	c.Flags().StringSliceVar(&rights, "rights", []string{"read"}, "what the user may do: a `list` of read, fetch, metrics")
	return c
}

// hashedPassword is the object of "hash-password --json".
type hashedPassword struct {
	Name   string   `json:"name"` // empty: none was given
	Hash   string   `json:"hash"`
	Rights []string `json:"rights"` // empty where no name was given
}

func (a *app) runHashPassword(ctx context.Context, name string, named bool, rights []string) error {
	h := hashedPassword{Name: name, Rights: []string{}}
	if named {
		if err := config.CheckPageUserName(name); err != nil {
			return usageError{fmt.Errorf("NAME %w", err)}
		}
		if _, err := config.ParsePageRights(rights); err != nil {
			return usageError{fmt.Errorf("--rights %w", err)}
		}
		h.Rights = rights
	}
	password, err := a.readNewPassword(ctx)
	if err != nil {
		return err
	}
	if h.Hash, err = web.HashPassword(password); err != nil {
		return fail(exitData, err, "choose another one; several words in a row are easy to keep")
	}
	switch {
	case a.json:
		return writeJSON(a.stdout, h)
	case named:
		_, err = fmt.Fprintf(a.stdout, "%s:%s:%s\n", name, h.Hash, strings.Join(rights, ","))
	default:
		_, err = fmt.Fprintln(a.stdout, h.Hash)
	}
	return err
}

// readNewPassword asks on the terminal, or reads one line where standard input is none.
func (a *app) readNewPassword(ctx context.Context) (string, error) {
	if f, ok := a.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return a.askPasswordTwice(ctx, int(f.Fd()))
	}
	const most = 4 << 10
	raw, err := io.ReadAll(io.LimitReader(a.stdin, most+1))
	if err != nil {
		return "", fail(exitIO, fmt.Errorf("read the password: %w", err), "")
	}
	line := bytes.TrimSuffix(bytes.TrimSuffix(raw, []byte("\n")), []byte("\r"))
	if len(raw) > most || bytes.ContainsAny(line, "\r\n") {
		return "", fail(exitData, errors.New("standard input holds more than one line"), "write the password alone, in one line")
	}
	return string(line), nil
}

// askPasswordTwice asks on a terminal that shows nothing of what is typed.
func (a *app) askPasswordTwice(ctx context.Context, terminal int) (string, error) {
	var typed [2]string
	for i, question := range []string{"New password: ", "Once more: "} {
		fmt.Fprint(a.stderr, question)
		text, err := readHidden(ctx, terminal)
		fmt.Fprintln(a.stderr)
		if err != nil {
			return "", fail(exitIO, fmt.Errorf("read the password: %w", err), "")
		}
		typed[i] = text
	}
	if typed[0] != typed[1] {
		return "", fail(exitData, errors.New("the two passwords differ"), "run the command again")
	}
	return typed[0], nil
}

// readHidden reads a line while the terminal does not show it. When ctx ends, it sets the terminal back and leaves the read behind:
// the process is about to end.
func readHidden(ctx context.Context, terminal int) (string, error) {
	before, err := term.GetState(terminal)
	if err != nil {
		return "", err
	}
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(terminal)
		read <- line{text, err}
	}()
	select {
	case l := <-read:
		return string(l.text), l.err
	case <-ctx.Done():
		return "", errors.Join(context.Cause(ctx), term.Restore(terminal, before))
	}
}

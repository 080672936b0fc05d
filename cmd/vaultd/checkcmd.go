package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

func (a *app) checkCommand() *cobra.Command {
	var schema bool
	c := &cobra.Command{
		Use:   "check",
		Short: "the configuration, checked without touching anything",
		Long: `Reads the configuration and says everything that is wrong with it at once: the file,
the line, what is wrong and what would be right. It also looks whether state_dir lies
on a local disk and whether the secret can be read. It changes and sends nothing.`,
		Example: `  vaultd check
  vaultd check --config ./config.yaml
  vaultd check --schema > /usr/share/vaultd/config.schema.json`,
		Args: takes(),
		RunE: func(*cobra.Command, []string) error {
			if schema {
				_, err := a.stdout.Write(configSchema)
				return err
			}
			return a.check()
		},
	}
	c.Flags().BoolVar(&schema, "schema", false, "print the JSON schema of the configuration, for editors")
	return c
}

// checked is the object of "check --json".
type checked struct {
	Good        bool           `json:"good"`
	Environment string         `json:"environment,omitempty"`
	Drops       int            `json:"drops"`
	Faults      []checkedFault `json:"faults"`
}

type checkedFault struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // 0: none
	Column  int    `json:"column"`
	Key     string `json:"key"`
	Problem string `json:"problem"`
	Hint    string `json:"hint"`
}

func (a *app) check() error {
	cfg, err := a.loadConfig()
	if err == nil {
		err = cfg.checkDisk(a.env)
	}
	wrong, isFaults := errors.AsType[*configError](err)
	switch {
	case a.json && isFaults:
		if err := writeJSON(a.stdout, checkedFaults(wrong)); err != nil {
			return err
		}
		return quiet(exitConfig)
	case err != nil:
		return err
	case a.json:
		return writeJSON(a.stdout, checked{Good: true, Environment: cfg.Service.Environment, Drops: len(cfg.Drops), Faults: []checkedFault{}})
	}
	fmt.Fprintf(a.stdout, "configuration is good: %s, %s environment, service %s\n",
		many(len(cfg.Drops), "drop", "drops"), cfg.Service.Environment, cfg.Service.BaseURL)
	t := newTable(a.stdout, "DROP", "PATH", "VAULT", "AFTER ARCHIVING")
	for _, d := range cfg.Drops {
		t.AppendRow(row(safe(d.Name), safe(d.Path), safe(d.Vault), afterWords(d.AfterArchive)))
	}
	t.Render()
	return nil
}

func checkedFaults(wrong *configError) checked {
	c := checked{}
	for _, f := range wrong.Faults {
		c.Faults = append(c.Faults, checkedFault{f.File, f.Line, f.Col, f.Key, f.Problem, f.Hint})
	}
	return c
}

func afterWords(a afterArchiveConfig) string {
	switch a.Action {
	case "move":
		return "moved to " + safe(a.To) + " after " + ageText(a.Grace)
	case "delete":
		return "deleted after " + ageText(a.Grace)
	}
	return "kept"
}

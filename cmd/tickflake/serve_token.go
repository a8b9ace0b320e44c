package main

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tickflake/tickflake/cmd/internal/command"
)

const serveTokenHelp = `Make a token for a client of 'tickflake serve', and print it with its hash. Give the
token to the client, as a password. Put the hash into the file of --config:

  clients:
    - name: shop
      token-hash: …

The token has at least 128 random bits. It is not kept anywhere.`

func newServeToken(c *command.Console) *cobra.Command {
	return &cobra.Command{
		Use:     "token",
		Short:   "Make a token for a client, and print it with its hash",
		Long:    serveTokenHelp,
		Example: "  tickflake serve token",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := c.Lost("token and its hash"); err != nil {
				return err
			}
			token := rand.Text()
			sum := sha256.Sum256([]byte(token))
			_, err := fmt.Fprintf(c.Out, "token       %s\ntoken-hash  %s\n", token, hex.EncodeToString(sum[:]))
			return err
		},
	}
}

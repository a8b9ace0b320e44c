package limit

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The page shows the limits as they are here.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/service.md")
	require.NoError(t, err)
	for _, row := range []string{
		fmt.Sprintf("| strangers | connections to an address | %d |", Strangers),
		fmt.Sprintf("| a stranger | unread replies | %d KiB |", StrangerReplies>>10),
		fmt.Sprintf("| a client | requests for more than %d IDs at once |", Turn),
		fmt.Sprintf("| a client | unread replies | half of what others leave, at least %d KiB |", LeastReplies>>10),
		fmt.Sprintf("| a connection | unread replies | %d MiB |", Replies>>20),
		fmt.Sprintf("| a connection | command; its arguments; one of them | %d KiB; %d; %d KiB |", Command>>10, Arguments, Argument>>10),
		fmt.Sprintf("| a connection | headers; message of gRPC; a body of HTTP | %d KiB; %d KiB; none |", Headers>>10, Message>>10),
		fmt.Sprintf("| a connection | calls of gRPC; requests of HTTP/2 | %d; %d |", Calls, HTTPStreams),
		fmt.Sprintf("| the server | unread replies | %d MiB |", AllReplies>>20),
		fmt.Sprintf("| the server | streams of reflection | %d |", Streams),
		fmt.Sprintf("| the server | files left free | %d | for the store and %d probes |", SpareFiles, Probes),
	} {
		assert.True(t, strings.Contains(string(page), row), "%s", row)
	}
}

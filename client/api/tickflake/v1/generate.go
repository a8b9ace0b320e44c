package tickflakev1

//go:generate sh -c "cd ../.. && ./check generate"

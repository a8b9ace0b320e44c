# Runs redis-rb for a test: reads one JSON request per line, does it, and writes one JSON
# answer per line.
require 'json'
require 'redis'

def describe(value)
  case value
  when nil then { type: 'null', text: '' }
  when Array then { type: 'array', items: value.map { |item| describe(item) } }
  when Exception then { type: 'error', class: value.class.name, text: value.message }
  else { type: value.class.name, text: value.to_s }
  end
end

client = nil
handlers = {
  'connect' => lambda do |r|
    client&.close
    tls = r['ca'] ? { ssl: true, ssl_params: { ca_file: r['ca'] } } : {}
    client = Redis.new(host: '127.0.0.1', port: r['port'], username: r['user'], password: r['password'], **tls)
    client.ping
  end,
  'call' => ->(r) { client.call(*r['args']) },
  'method' => ->(r) { client.public_send(*r['args']) },
  'pipeline' => ->(r) { client.pipelined { |pipe| r['commands'].each { |args| pipe.call(*args) } } },
  'cluster' => ->(r) { Redis.new(cluster: ["redis://127.0.0.1:#{r['port']}"]) }
}

$stdout.sync = true
$stdin.each_line do |line|
  request = JSON.parse(line)
  begin
    answer = describe(handlers.fetch(request['do']).call(request))
  rescue StandardError => e
    answer = describe(e)
  end
  puts JSON.generate(answer)
end

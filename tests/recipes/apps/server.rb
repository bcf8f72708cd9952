# Answers each request with the sum of what it allocates for it; for the recipe in docs/recipes.md.
require 'socket'
server = TCPServer.new('127.0.0.1', Integer(ENV['PORT']))
loop do
  client = server.accept
  while (line = client.gets) && line != "\r\n"; end
  total = ('x' * (1 << 20)).length + (0...10_000).sum { |i| i.to_s.length }
  answer = "sum #{total}"
  client.write "HTTP/1.1 200 OK\r\nContent-Length: #{answer.length}\r\nConnection: close\r\n\r\n#{answer}"
  client.close
end

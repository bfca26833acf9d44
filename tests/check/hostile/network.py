#: tcp to a listener
import socket
s = socket.socket()
s.connect(("127.0.0.1", @PORT@))
print("ESCAPED", s.recv(5))
#: create_connection
from socket import create_connection as go
print("ESCAPED", go(("127.0.0.1", @PORT@)).recv(5))
#: udp | danger
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"x", ("192.0.2.1", 53))
print("ESCAPED")
#: urllib
import urllib.request
print("ESCAPED", urllib.request.urlopen("http://127.0.0.1:@PORT@/").status)
#: urllib from import
from urllib.request import urlopen
print("ESCAPED", urlopen("http://127.0.0.1:@PORT@/").read(2))
#: http.client
import http.client
c = http.client.HTTPConnection("127.0.0.1", @PORT@)
c.request("GET", "/")
print("ESCAPED", c.getresponse().status)
#: pandas by url
import pandas as pd
print("ESCAPED", pd.read_csv("http://127.0.0.1:@PORT@/data.csv").shape)
#: raw socket | danger
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)
print("ESCAPED")
#: name lookup | danger
import socket
print("ESCAPED", socket.getaddrinfo("example.org", 80))
#: mail | danger
import smtplib
print("ESCAPED", smtplib.SMTP("127.0.0.1", 25))
#: ftp | danger
import ftplib
print("ESCAPED", ftplib.FTP("127.0.0.1"))
#: asyncio streams
import asyncio
async def main():
    reader, writer = await asyncio.open_connection("127.0.0.1", @PORT@)
    print("ESCAPED", await reader.read(2))
asyncio.run(main())
#: socket by __import__
s = __import__("soc" + "ket").socket()
s.connect(("127.0.0.1", @PORT@))
print("ESCAPED", s.recv(2))
#: private _socket
import _socket
s = _socket.socket()
s.connect(("127.0.0.1", @PORT@))
print("ESCAPED", s.recv(2))
#: docker socket | danger
import socket
s = socket.socket(socket.AF_UNIX)
s.connect("/var/run/docker.sock")
print("ESCAPED")
#: xmlrpc | danger
from xmlrpc.client import ServerProxy
print("ESCAPED", ServerProxy("http://127.0.0.1:1/").system.listMethods())
#: a server of its own
from http.server import BaseHTTPRequestHandler, HTTPServer
server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
print("ESCAPED", server.server_port)
#: a socket class from another module | unseen
import multiprocessing.connection as c
listener = [v for k, v in vars(c).items() if k == "SocketListener"][0]("127.0.0.1:0".split(":")[0:1] and ("127.0.0.1", 0), "AF_INET")
print("ESCAPED", listener.address)

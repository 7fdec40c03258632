"""The peer of `serve.py`: a River Perceptron behind FastAPI that keeps everything in memory."""

import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from river import linear_model

app = FastAPI()
model = linear_model.Perceptron()


class Instance(BaseModel):
    attributes: dict[str, float]


class Labelled(Instance):
    label: str
    id: str


class Predicted(BaseModel):
    label: str


class Learned(BaseModel):
    id: str
    label: str
    predicted: str
    mistake: bool


def told(found: bool) -> str:
    return "yes" if found else "no"


@app.post("/v1/models/m/predict")
async def predict(body: Instance) -> Predicted:
    return Predicted(label=told(model.predict_one(body.attributes)))


@app.post("/v1/models/m/learn")
async def learn(body: Labelled) -> Learned:
    predicted = told(model.predict_one(body.attributes))
    model.learn_one(body.attributes, body.label == "yes")
    return Learned(id=body.id, label=body.label, predicted=predicted, mistake=predicted != body.label)


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)

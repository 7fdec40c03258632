"""The peer of `serve.py`: River's Perceptron behind FastAPI, one against all when there are more than two classes.

It keeps everything in memory and stores nothing.
"""

import sys

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from river import linear_model, multiclass

app = FastAPI()
two = sys.argv[2] == "2"
model = linear_model.Perceptron() if two else multiclass.OneVsRestClassifier(linear_model.Perceptron())


class Instance(BaseModel):
    attributes: dict[str, float]


class Labelled(Instance):
    label: str
    id: str


class Predicted(BaseModel):
    label: str | None


class Learned(BaseModel):
    id: str
    label: str
    predicted: str | None
    mistake: bool


def told(found: bool | str | None) -> str | None:
    return f"c{int(found)}" if two else found


@app.post("/v1/models/m/predict")
async def predict(body: Instance) -> Predicted:
    return Predicted(label=told(model.predict_one(body.attributes)))


@app.post("/v1/models/m/learn")
async def learn(body: Labelled) -> Learned:
    predicted = told(model.predict_one(body.attributes))
    model.learn_one(body.attributes, body.label == "c1" if two else body.label)
    return Learned(id=body.id, label=body.label, predicted=predicted, mistake=predicted != body.label)


uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="error", access_log=False)
